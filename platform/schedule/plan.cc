#include "schedule/plan.h"

namespace muster::schedule {

std::string_view to_string(EvictionCause cause) {
  switch (cause) {
    case EvictionCause::kReclaimed:
      return "reclaimed";
    case EvictionCause::kPreempted:
      return "preempted";
    case EvictionCause::kMoved:
      return "moved";
    case EvictionCause::kStale:
      return "stale";
  }
  return "unknown";
}

std::string_view to_string(Constraint constraint) {
  switch (constraint) {
    case Constraint::kNone:
      return "none";
    case Constraint::kProject:
      return "project";
    case Constraint::kLimit:
      return "limit";
    case Constraint::kQuota:
      return "quota";
    case Constraint::kRoom:
      return "room";
    case Constraint::kTopology:
      return "topology";
    case Constraint::kReserved:
      return "reserved";
    case Constraint::kReleasing:
      return "releasing";
    case Constraint::kNever:
      return "never";
    case Constraint::kDelayed:
      return "delayed";
    case Constraint::kTurn:
      return "turn";
  }
  return "unknown";
}

}  // namespace muster::schedule
