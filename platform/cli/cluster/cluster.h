// The commands on what jobs share: node, top.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/command/call.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "job/job.h"
#include "job/node.h"
#include "job/project.h"

namespace muster::cli::cluster {

struct TopCommand {
  std::chrono::milliseconds interval{1000};
  bool once = false;
};

struct NodeListCommand {
  Output output = Output::kTable;
};

struct NodeGetCommand {
  std::string name;
  Output output = Output::kTable;
};

struct NodeChangeCommand {
  enum class What { kCordon, kUncordon, kDrain };
  What what = What::kCordon;
  std::vector<std::string> names;
  Output output = Output::kTable;
};

Result<int> execute(const TopCommand& command, const Hooks& hooks);
Result<int> execute(const NodeListCommand& command, const Hooks& hooks);
Result<int> execute(const NodeGetCommand& command, const Hooks& hooks);
Result<int> execute(const NodeChangeCommand& command, const Hooks& hooks);

Command node_command();
Command top_command();

// The machines as people read them: the table of `node list`, the page of `node get`, and the
// picture of `muster top`, cut to the size of the screen: nodes, projects, and the jobs that run
// and wait.
//
// Pure.

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
