#include "engine/container/steps.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace muster::engine {
namespace {

using base::Error;
using base::Result;

class StepsOfThree : public testing::Test {
 protected:
  /// Notes that it was called; what it calls when it is done is kept.
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

TEST_F(StepsOfThree, OneByOneEachWaitsForTheOneBefore) {
  one_by_one({later("a"), later("b"), later("c")}, done());
  EXPECT_EQ(called_, "a");

  waiting_[0]({});
  EXPECT_EQ(called_, "ab");
  waiting_[1]({});
  waiting_[2]({});

  EXPECT_EQ(called_, "abc");
  EXPECT_TRUE(*result_);
}

TEST_F(StepsOfThree, OneByOneTheFirstThatFailsIsTheLast) {
  one_by_one({at_once("a"), at_once("b", Error{.what = "broken"}), at_once("c")}, done());

  EXPECT_EQ(called_, "ab");
  EXPECT_EQ(result_->error().what, "broken");
}

TEST_F(StepsOfThree, AllAtOnceEndsWithTheLastAndTheFirstError) {
  all_at_once({later("a"), at_once("b", Error{.what = "first"}), later("c")}, done());
  EXPECT_EQ(called_, "abc");
  EXPECT_FALSE(result_);

  waiting_[1](Error{.what = "second"});
  EXPECT_FALSE(result_);
  waiting_[0]({});

  EXPECT_EQ(result_->error().what, "first");
}

TEST_F(StepsOfThree, OfNothingAreDoneAtOnce) {
  one_by_one({}, done());
  EXPECT_TRUE(*result_);
  result_.reset();
  all_at_once({}, done());
  EXPECT_TRUE(*result_);
}

}  // namespace
}  // namespace muster::engine
