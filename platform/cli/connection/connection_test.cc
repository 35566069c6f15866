#include "cli/connection/connection.h"

#include <gtest/gtest.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cstdint>

#include "base/unique_fd.h"
#include "cli/cli_fixture.h"

namespace muster::cli {

namespace {

using Reconnection = Cli;

TEST_F(Reconnection, TicksDoNotProlongTheWait) {
  serve({});
  auto connection = Connection::open({}, "1");
  ASSERT_TRUE(connection) << connection.error().to_string();
  ASSERT_TRUE(connection->come_back());
  ASSERT_TRUE(connection->come_back());
  // It ticks several times during the next wait.
  const base::UniqueFd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  const itimerspec every{.it_interval = {.tv_sec = 0, .tv_nsec = 50'000'000},
                         .it_value = {.tv_sec = 0, .tv_nsec = 1}};
  ASSERT_EQ(::timerfd_settime(timer.get(), 0, &every, nullptr), 0);

  int ticks = 0;
  while (ticks < 200) {
    const auto is_back = connection->come_back(timer.get());
    ASSERT_TRUE(is_back) << is_back.error().to_string();
    if (*is_back) break;
    uint64_t count = 0;
    ASSERT_GT(::read(timer.get(), &count, sizeof count), 0);
    ++ticks;
  }

  EXPECT_GT(ticks, 0);
  EXPECT_LT(ticks, 200);
}

}  // namespace

}  // namespace muster::cli
