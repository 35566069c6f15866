// What an earlier server left on a host is listed before anything is created there: an object that a
// start creates during the listing would be removed as a leftover.
#include "engine/container/leftovers.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/test_folder.h"
#include "engine/container/container_engine.h"
#include "engine/container/scripted_daemon.h"

namespace muster::engine {
namespace {

using base::Result;

class LeftoversTest : public testing::Test {
 protected:
  LeftoversTest() {
    for (const char* program : {"muster-shim", "muster-helper", "muster-rsh"}) {
      EXPECT_TRUE(base::write_file(folder_ / program, ""));
    }
  }

  std::string socket_of(const std::string& host) const { return (folder_ / host).string(); }

  /// An engine without any objects.
  std::unique_ptr<ScriptedDaemon> daemon(const std::string& host) {
    auto daemon = std::make_unique<ScriptedDaemon>(loop_, socket_of(host));
    daemon->answer("GET /containers/json", "[]");
    daemon->answer("GET /networks", "[]");
    daemon->answer("GET /volumes", R"({"Volumes":[]})");
    daemon->refuse("POST /networks/create", 500, "no more networks");
    return daemon;
  }

  std::unique_ptr<ContainerEngine> open(const std::vector<std::string>& hosts) {
    ContainerEngineOptions options;
    options.folder = folder_ / "jobs";
    options.programs = folder_.path();
    options.owner = "me";
    for (const std::string& host : hosts) {
      options.hosts.push_back(
          {.name = host, .endpoint = UnixEndpoint{socket_of(host)}, .address = {}});
    }
    auto engine = ContainerEngine::open(loop_, std::move(options));
    EXPECT_TRUE(engine) << engine.error().to_string();
    if (!engine) return nullptr;
    (*engine)->listen([](const TaskReport&) {});
    return *std::move(engine);
  }

  base::TestFolder folder_;
  base::EventLoop loop_;
};

TEST_F(LeftoversTest, AHostIsListedOnceWhenTheEngineOpens) {
  const auto host = daemon("a");

  const auto engine = open({"a"});

  ASSERT_TRUE(engine);
  for (const char* list : {"GET /containers/json", "GET /networks", "GET /volumes"}) {
    EXPECT_EQ(host->count(list), 1) << list;
  }
}

TEST_F(LeftoversTest, AStartOnAHostThatAnswersLateWaitsForItsLists) {
  const auto first = daemon("a");
  const auto engine = open({"a", "b"});
  ASSERT_TRUE(engine);
  const auto late = daemon("b");
  late->on_asked = [&](const std::string& what) {
    if (what == "GET /volumes") late->hang();
  };
  ASSERT_TRUE(run_until(loop_, [&] { return late->count("GET /volumes") == 1; }));

  launch::TaskPlan plan;
  plan.task = plan.hostname = "main";
  plan.node = "b";
  plan.reach = launch::Reach::kNames;
  plan.argv = {"true"};
  plan.image = "image";
  std::optional<Result<void>> started;
  engine->start({"job1", 1}, {plan}, [&](const Result<void>& result) { started = result; });

  // A request that is sent now arrives after those of the start.
  DockerClient client(loop_, UnixEndpoint{socket_of("b")});
  const int pings = late->count("GET /_ping");
  client.info([](const Result<DockerInfo>&) {});
  ASSERT_TRUE(run_until(loop_, [&] { return late->count("GET /_ping") > pings; }));
  EXPECT_EQ(late->count("POST /networks/create"), 0);

  late->on_asked = nullptr;
  late->go_on();
  ASSERT_TRUE(run_until(loop_, [&] { return started.has_value(); }));
  EXPECT_EQ(late->count("POST /networks/create"), 1);
  ASSERT_FALSE(*started);
  EXPECT_NE(started->error().what.find("no more networks"), std::string::npos)
      << started->error().to_string();
}

}  // namespace
}  // namespace muster::engine
