// Which gangs start now, where each of their tasks goes, and why the others wait.
//
// Pure: a snapshot in, a plan out. First come, first served: a gang that does not fit holds back
// those behind it only for what it waits for itself, so nothing overtakes a wide gang for ever.
#pragma once

#include <string>
#include <vector>

#include "schedule/snapshot.h"

namespace muster::schedule {

struct Start {
  std::string job_id;
  std::vector<std::string> nodes;  ///< by task, in the gang's order

  bool operator==(const Start&) const = default;
};

struct Wait {
  std::string job_id;
  std::string reason;  ///< one sentence

  bool operator==(const Wait&) const = default;
};

struct Plan {
  std::vector<Start> starts;
  std::vector<Wait> waits;
};

Plan make_plan(Snapshot snapshot);

/// Takes a task's claim from a node's free room; false, and nothing taken, where it does not fit.
bool take(Node& node, const Resources& claim);

}  // namespace muster::schedule
