// A parameter server as the program of a task: how it ends.
#include "muster/parameter_server/server.h"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "parameter_server/rpc/test_process.h"

namespace muster::parameter_server {
namespace {

using testing::kKey;
using testing::Process;
using testing::Values;

void train_briefly(const Process& process, int worker) {
  auto client = Client::connect({.servers = {process.address}, .worker = worker, .key = kKey});
  ASSERT_TRUE(client) << client.error().to_string();
  const auto declared = client->declare({{"w", {2}, Values(2)}}, Sgd{.learning_rate = 1});
  ASSERT_TRUE(declared) << declared.error().to_string();
  const auto left = client->leave();
  ASSERT_TRUE(left) << left.error().to_string();
}

TEST(ServerAsTask, EndsWithItsWorkersIfNoJobStopsIt) {
  for (const std::string task : {"MUSTER_TASK=", "MUSTER_TASK=worker-0"}) {
    Process process({task});
    train_briefly(process, 0);
    EXPECT_EQ(process.next_line(), "gone");
    EXPECT_EQ(process.exit_code(), 0) << task;
  }
}

TEST(ServerAsTask, OfAJobServesOnAfterItsWorkersHaveLeftUntilASignalStopsIt) {
  for (const int signal : {SIGTERM, SIGINT}) {
    Process process({"MUSTER_TASK=ps-0"});
    train_briefly(process, 0);
    EXPECT_EQ(process.next_line(), "gone");
    train_briefly(process, 1);
    const auto present = Client::connect({.servers = {process.address}, .worker = 2, .key = kKey});
    ASSERT_TRUE(present) << present.error().to_string();
    EXPECT_EQ(process.end_by(signal), 0) << signal;
  }
}

TEST(ServerAsTask, OfAJobEndsWhenTheProgramStopsItAfterItsWorkersHaveLeft) {
  Process process({"MUSTER_TASK=ps-0", "STOP_WHEN_GONE=1"});
  train_briefly(process, 0);
  EXPECT_EQ(process.next_line(), "gone");
  EXPECT_EQ(process.exit_code(), 0);
}

}  // namespace
}  // namespace muster::parameter_server
