// Projects as people read them: the tree of `project list`, the page of `project get`.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "job/project.h"

namespace muster::cli::projects {

/// NAME QUOTA LIMIT WEIGHT FAIR-SHARE USED RUNNING WAITING; a project stands below its parent,
/// indented. The one that is `in_use` is marked with a star.
std::string project_table(const std::vector<job::ProjectStatus>& projects,
                          const std::string& in_use = {});

/// What it may use, what it uses, and the quotas of its own in node pools.
std::string project_page(const job::ProjectStatus& project);

}  // namespace muster::cli::projects
