#include "engine/container/turns.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace muster::engine {
namespace {

class TurnsOfTwo : public testing::Test {
 protected:
  void wait(const std::string& who) {
    turns_->wait([this, who](Turns::Turn turn) {
      begun_ += who;
      held_.push_back(std::move(turn));
    });
  }

  void run_what_waits() {
    loop_.post([this] { loop_.stop(); });
    loop_.run();
  }

  base::EventLoop loop_;
  std::optional<Turns> turns_{std::in_place, loop_, 2};
  std::string begun_;
  std::vector<Turns::Turn> held_;
};

TEST_F(TurnsOfTwo, AreGivenAtOnceWhileThereAreAny) {
  for (const char* who : {"a", "b", "c"}) wait(who);

  EXPECT_EQ(begun_, "ab");
}

TEST_F(TurnsOfTwo, GoToWhoeverHasWaitedLongest) {
  for (const char* who : {"a", "b", "c", "d"}) wait(who);

  held_.erase(held_.begin());
  run_what_waits();
  EXPECT_EQ(begun_, "abc");
  held_.clear();
  run_what_waits();
  EXPECT_EQ(begun_, "abcd");
}

TEST_F(TurnsOfTwo, LastAsLongAsAnyCopyIsHeld) {
  for (const char* who : {"a", "b", "c"}) wait(who);
  Turns::Turn copy = held_.front();

  held_.erase(held_.begin());
  run_what_waits();
  EXPECT_EQ(begun_, "ab");
  copy.reset();
  run_what_waits();
  EXPECT_EQ(begun_, "abc");
}

TEST_F(TurnsOfTwo, MayOutliveWhoGaveThem) {
  for (const char* who : {"a", "b", "c"}) wait(who);

  turns_.reset();
  held_.clear();
  run_what_waits();

  EXPECT_EQ(begun_, "ab");
}

}  // namespace
}  // namespace muster::engine
