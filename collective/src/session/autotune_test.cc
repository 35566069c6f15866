#include "session/autotune.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace muster::collective::session {
namespace {

TEST(Autotune, KeepsTheSettingWithTheHighestRate) {
  Autotune tune({1, 2, 3}, 2, 2);
  Deadline now{};
  const Batch first{{{.id = 1, .news = std::make_shared<Agreed>()},
                     {.id = 2, .news = std::make_shared<Agreed>()}}};
  const Batch one{{{.id = 1}}};
  const Batch two{{{.id = 2}}};
  EXPECT_FALSE(tune.on_batch(first, 100, now));
  for (int step = 0; step < 100 && !tune.is_done(); ++step) {
    // With setting 2 a step takes half of the time.
    now += std::chrono::milliseconds(tune.current() == 2 ? 10 : 20);
    tune.on_batch(one, 60, now);
    tune.on_batch(two, 40, now);
  }
  ASSERT_TRUE(tune.is_done());
  EXPECT_EQ(tune.current(), 2u);
  const std::string log = tune.take_log();
  EXPECT_TRUE(log.starts_with("fusion_bytes,steps,bytes,seconds,bytes_per_second,chosen\n1,2,200,"))
      << log;
  EXPECT_EQ(std::ranges::count(log, '\n'), 1 + 6 + 1) << log;
}

TEST(Autotune, WaitsForANameThatComesTwice) {
  Autotune tune({1, 2}, 1, 1);
  for (std::uint32_t id = 1; id < 100; ++id) {
    EXPECT_FALSE(tune.on_batch(Batch{{{.id = id, .news = std::make_shared<Agreed>()}}}, 1, {}));
  }
  EXPECT_FALSE(tune.is_done());
}

}  // namespace
}  // namespace muster::collective::session
