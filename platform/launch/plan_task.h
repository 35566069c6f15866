// One task of a gang, planned.
//
// Pure. Of plan.cc and growth.cc alone.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "launch/gang.h"

namespace muster::launch {

/// The task at `index` of gang.tasks.
TaskPlan plan_task(const Gang& gang, size_t index);

/// What its /etc/hosts is to know.
std::vector<std::pair<std::string, std::string>> names_for(const Gang& gang, size_t index);

/// The files of a planned task that say whom it can reach and how.
std::vector<PlannedFile> reach_files(const Gang& gang, size_t index);

}  // namespace muster::launch
