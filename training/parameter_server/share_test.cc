#include "parameter_server/share.h"

#include <gtest/gtest.h>

#include <latch>
#include <vector>

namespace muster::parameter_server {
namespace {

TEST(Share, DoesEachPartOnce) {
  for (const std::size_t threads : {0, 1, 3, 8}) {
    for (const std::size_t parts : {0, 1, 2, 100}) {
      std::vector<int> done(parts);
      share(parts, threads, [&](std::size_t part) { ++done[part]; });
      EXPECT_EQ(done, std::vector<int>(parts, 1)) << threads << " threads";
    }
  }
}

TEST(Share, HasAsManyThreadsAtWorkAsItMay) {
  constexpr std::size_t kThreads = 3;
  std::latch all_at_work(kThreads);
  share(kThreads, kThreads, [&](std::size_t) { all_at_work.arrive_and_wait(); });
  EXPECT_TRUE(all_at_work.try_wait());
}

}  // namespace
}  // namespace muster::parameter_server
