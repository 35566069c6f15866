#include "schedule/model.h"

#include <algorithm>

namespace muster::schedule {

int task_count(const Gang& gang) {
  int count = 0;
  for (const TaskGroup& group : gang.groups) count += group.count;
  return count;
}

int minimum_tasks(const Gang& gang) {
  int count = 0;
  for (const TaskGroup& group : gang.groups) count += group.minimum;
  return count;
}

bool is_elastic(const Gang& gang) {
  return std::any_of(gang.groups.begin(), gang.groups.end(),
                     [](const TaskGroup& group) { return group.minimum < group.count; });
}

const TaskGroup& group_of(const Gang& gang, int index) {
  for (const TaskGroup& group : gang.groups) {
    if (index < group.count) return group;
    index -= group.count;
  }
  return gang.groups.back();
}

}  // namespace muster::schedule
