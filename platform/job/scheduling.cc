#include "job/enum_names.h"
#include "job/spec.h"

namespace muster::job {

namespace {

using Action = RetryRule::Action;

constexpr Names<Purpose, 3> kPurposes{
    {{Purpose::kTrain, "train"}, {Purpose::kBuild, "build"}, {Purpose::kInference, "inference"}}};

constexpr Names<Resize, 3> kResizes{
    {{Resize::kAuto, "auto"}, {Resize::kLive, "live"}, {Resize::kRestart, "restart"}}};

constexpr Names<Packing, 3> kPackings{
    {{Packing::kAuto, "auto"}, {Packing::kPack, "pack"}, {Packing::kSpread, "spread"}}};

constexpr Names<Action, 3> kActions{
    {{Action::kRetry, "retry"}, {Action::kFail, "fail"}, {Action::kAvoidNode, "avoid-node"}}};

constexpr int kTrainPriority = 50;
constexpr int kPreemptibleBuildPriority = 75;
constexpr int kBuildPriority = kFirstNonPreemptiblePriority;
constexpr int kInferencePriority = 125;

}  // namespace

std::string_view to_string(Purpose purpose) {
  return name_in(kPurposes, purpose);
}
std::optional<Purpose> purpose_of(std::string_view name) {
  return value_in(kPurposes, name);
}

std::string_view to_string(Resize resize) {
  return name_in(kResizes, resize);
}
std::optional<Resize> resize_of(std::string_view name) {
  return value_in(kResizes, name);
}

std::string_view to_string(Packing packing) {
  return name_in(kPackings, packing);
}
std::optional<Packing> packing_of(std::string_view name) {
  return value_in(kPackings, name);
}

std::string_view to_string(RetryRule::Action action) {
  return name_in(kActions, action);
}
std::optional<RetryRule::Action> retry_action_of(std::string_view name) {
  return value_in(kActions, name);
}

int priority_of(const Scheduling& scheduling) {
  if (scheduling.priority) return *scheduling.priority;
  switch (scheduling.purpose) {
    case Purpose::kTrain:
      return kTrainPriority;
    case Purpose::kBuild:
      return scheduling.preemptible.value_or(false) ? kPreemptibleBuildPriority : kBuildPriority;
    case Purpose::kInference:
      return kInferencePriority;
  }
  return kTrainPriority;
}

bool is_preemptible(const Scheduling& scheduling) {
  return scheduling.preemptible.value_or(priority_of(scheduling) < kFirstNonPreemptiblePriority);
}

}  // namespace muster::job
