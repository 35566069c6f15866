#include "engine/container/steps.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace muster::engine {

using base::Error;
using base::Result;

namespace {

class StepsOfThree : public testing::Test {
 protected:
  /// Records that it was called, and stores its callback.
  Step later(const std::string& name) {
    return [this, name](Then then) {
      called_ += name;
      waiting_.push_back(std::move(then));
    };
  }

  Step at_once(const std::string& name, Result<void> result = {}) {
    return [this, name, result](const Then& then) {
      called_ += name;
      then(result);
    };
  }

  Then done() {
    return [this](Result<void> result) {
      EXPECT_FALSE(result_) << "a second end";
      result_ = std::move(result);
    };
  }

  std::string called_;
  std::vector<Then> waiting_;
  std::optional<Result<void>> result_;
};

TEST_F(StepsOfThree, RunOneByOneEachWaitsForThePreviousStep) {
  one_by_one({later("a"), later("b"), later("c")}, done());
  EXPECT_EQ(called_, "a");

  waiting_[0]({});
  EXPECT_EQ(called_, "ab");
  waiting_[1]({});
  waiting_[2]({});

  EXPECT_EQ(called_, "abc");
  EXPECT_TRUE(*result_);
}

TEST_F(StepsOfThree, OneByOneStopsAtTheFirstFailure) {
  one_by_one({at_once("a"), at_once("b", Error{.what = "broken"}), at_once("c")}, done());

  EXPECT_EQ(called_, "ab");
  EXPECT_EQ(result_->error().what, "broken");
}

TEST_F(StepsOfThree, AllAtOnceEndsWithTheLastStepAndReportsTheFirstError) {
  all_at_once({later("a"), at_once("b", Error{.what = "first"}), later("c")}, done());
  EXPECT_EQ(called_, "abc");
  EXPECT_FALSE(result_);

  waiting_[1](Error{.what = "second"});
  EXPECT_FALSE(result_);
  waiting_[0]({});

  EXPECT_EQ(result_->error().what, "first");
}

TEST_F(StepsOfThree, WithoutStepsAreDoneAtOnce) {
  one_by_one({}, done());
  EXPECT_TRUE(*result_);
  result_.reset();
  all_at_once({}, done());
  EXPECT_TRUE(*result_);
}

}  // namespace
namespace {

class TurnsOfTwo : public testing::Test {
 protected:
  void wait(const std::string& who) {
    turns_->wait([this, who](Turns::Turn turn) {
      begun_ += who;
      held_.push_back(std::move(turn));
    });
  }

  void run_pending_steps() {
    loop_.post([this] { loop_.stop(); });
    loop_.run();
  }

  base::EventLoop loop_;
  std::optional<Turns> turns_{std::in_place, loop_, 2};
  std::string begun_;
  std::vector<Turns::Turn> held_;
};

TEST_F(TurnsOfTwo, AreGivenAtOnceWhileTurnsAreFree) {
  for (const char* who : {"a", "b", "c"}) wait(who);

  EXPECT_EQ(begun_, "ab");
}

TEST_F(TurnsOfTwo, GoToTheLongestWaitingCaller) {
  for (const char* who : {"a", "b", "c", "d"}) wait(who);

  held_.erase(held_.begin());
  run_pending_steps();
  EXPECT_EQ(begun_, "abc");
  held_.clear();
  run_pending_steps();
  EXPECT_EQ(begun_, "abcd");
}

TEST_F(TurnsOfTwo, LastAsLongAsAnyCopyIsHeld) {
  for (const char* who : {"a", "b", "c"}) wait(who);
  Turns::Turn copy = held_.front();

  held_.erase(held_.begin());
  run_pending_steps();
  EXPECT_EQ(begun_, "ab");
  copy.reset();
  run_pending_steps();
  EXPECT_EQ(begun_, "abc");
}

TEST_F(TurnsOfTwo, MayOutliveTheTurns) {
  for (const char* who : {"a", "b", "c"}) wait(who);

  turns_.reset();
  held_.clear();
  run_pending_steps();

  EXPECT_EQ(begun_, "ab");
}

}  // namespace
}  // namespace muster::engine
