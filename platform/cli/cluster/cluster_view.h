// The machines as people read them: the table of `node list`, the page of `node get`, and the
// picture of `muster top`, cut to the size of the screen: nodes, projects, and the jobs that run
// and wait.
//
// Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cli/common/live_screen.h"
#include "job/job.h"
#include "job/node.h"
#include "job/project.h"

namespace muster::cli::cluster {

/// NAME STATE POOL GPUS CPUS MEMORY JOBS; amounts are "taken/all".
std::string node_table(const std::vector<job::Node>& nodes);

/// What it is and has, and who holds each of its GPUs.
std::string node_page(const job::Node& node);

/// Thousandths of GPUs of `node` that are taken.
int64_t gpus_taken_milli(const job::Node& node);

struct ClusterView {
  std::vector<job::Node> nodes;
  std::vector<job::ProjectStatus> projects;
  std::vector<job::Job> jobs;   ///< all
  std::vector<job::Job> queue;  ///< those that wait, as they are served
  base::Time now;
};

/// Lines that each end with a newline and hold no control character. Where they are more than fit,
/// each part gives up its last rows and says how many, the largest part first.
std::string top_picture(const ClusterView& view, ScreenSize size);

}  // namespace muster::cli::cluster
