// One picture of `muster top`: nodes, projects, and the jobs that run and wait, cut to the size of
// the screen.
//
// Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "job/job.h"
#include "job/node.h"
#include "job/project.h"

namespace muster::cli {

struct ClusterView {
  std::vector<job::Node> nodes;
  std::vector<job::ProjectStatus> projects;
  std::vector<job::Job> jobs;   ///< all
  std::vector<job::Job> queue;  ///< those that wait, as they are served
  base::Time now;
};

/// 0: as long as it takes.
struct ScreenSize {
  size_t columns = 0;
  size_t rows = 0;
};

/// Lines that each end with a newline and hold no control character. Where they are more than fit,
/// each part gives up its last rows and says how many, the largest part first.
std::string top_picture(const ClusterView& view, ScreenSize size);

/// The first `columns` code points of a line of valid UTF-8.
std::string_view cut_to(std::string_view line, size_t columns);

}  // namespace muster::cli
