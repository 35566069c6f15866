#include "job/spec.h"

namespace muster::job {

namespace {

constexpr int kTrainPriority = 50;
constexpr int kPreemptibleBuildPriority = 75;
constexpr int kBuildPriority = kFirstNonPreemptiblePriority;
constexpr int kInferencePriority = 125;

}  // namespace

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
