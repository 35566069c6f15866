#include <gtest/gtest.h>

#include "job/spec.h"

namespace muster::job {
namespace {

struct PriorityCase {
  Scheduling scheduling;
  int priority;
  bool preemptible;
};

TEST(Priority, DependsOnThePurposeUnlessTheJobSetsIt) {
  const PriorityCase cases[] = {
      {{}, 50, true},
      {{.preemptible = false}, 50, false},
      {{.purpose = Purpose::kBuild}, 100, false},
      {{.purpose = Purpose::kBuild, .preemptible = true}, 75, true},
      {{.purpose = Purpose::kInference}, 125, false},
      {{.purpose = Purpose::kInference, .preemptible = true}, 125, true},
      {{.priority = 99}, 99, true},
      {{.priority = 100}, 100, false},
      {{.priority = 1000, .preemptible = true}, 1000, true},
      {{.purpose = Purpose::kBuild, .priority = 60, .preemptible = true}, 60, true},
      {{.purpose = Purpose::kBuild, .priority = 60}, 60, true},
  };
  for (const PriorityCase& each : cases) {
    const std::string name = std::string(to_string(each.scheduling.purpose)) + " " +
                             std::to_string(each.scheduling.priority.value_or(-1));
    EXPECT_EQ(priority_of(each.scheduling), each.priority) << name;
    EXPECT_EQ(is_preemptible(each.scheduling), each.preemptible) << name;
  }
}

TEST(Names, OfPurposesResizesPackingsAndActionsReadBack) {
  for (const Purpose purpose : {Purpose::kTrain, Purpose::kBuild, Purpose::kInference}) {
    EXPECT_EQ(purpose_of(to_string(purpose)), purpose);
  }
  for (const Packing packing : {Packing::kAuto, Packing::kPack, Packing::kSpread}) {
    EXPECT_EQ(packing_of(to_string(packing)), packing);
  }
  for (const Resize resize : {Resize::kAuto, Resize::kLive, Resize::kRestart}) {
    EXPECT_EQ(resize_of(to_string(resize)), resize);
  }
  for (const auto action :
       {RetryRule::Action::kRetry, RetryRule::Action::kFail, RetryRule::Action::kAvoidNode}) {
    EXPECT_EQ(retry_action_of(to_string(action)), action);
  }
  EXPECT_EQ(purpose_of("Train"), std::nullopt);
  EXPECT_EQ(resize_of("never"), std::nullopt);
  EXPECT_EQ(packing_of(""), std::nullopt);
  EXPECT_EQ(retry_action_of("avoid"), std::nullopt);
}

}  // namespace
}  // namespace muster::job
