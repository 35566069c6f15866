// What the scheduler sees: the nodes with what is free on them, and the gangs that wait.
//
// Plain values.
#pragma once

#include <string>
#include <vector>

#include "job/spec.h"

namespace muster::schedule {

using job::Resources;

struct Node {
  std::string name;
  Resources total;
  Resources free;
  int free_task_slots = 0;

  bool operator==(const Node&) const = default;
};

/// A gang that waits: what each of its tasks claims.
struct Waiting {
  std::string job_id;
  std::vector<Resources> tasks;
};

struct Snapshot {
  std::vector<Node> nodes;
  std::vector<Waiting> queue;  ///< in the order in which they are considered
};

}  // namespace muster::schedule
