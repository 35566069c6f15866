// The commands on nodes: node, top.
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

// Nodes as text for people: the table of `node list`, the page of `node get`, and the screen of
// `muster top` with nodes, projects, running and waiting jobs. Pure.

/// NAME STATE POOL GPUS CPUS MEMORY JOBS; amounts are "used/all".
std::string node_table(const std::vector<job::Node>& nodes);

/// The resources of a node, and the job that uses each GPU.
std::string node_page(const job::Node& node);

/// Used GPUs of `node`, in thousandths.
int64_t gpus_taken_milli(const job::Node& node);

struct ClusterView {
  std::vector<job::Node> nodes;
  std::vector<job::ProjectStatus> projects;
  std::vector<job::Job> jobs;   ///< all
  std::vector<job::Job> queue;  ///< waiting jobs in serve order
  base::Time now;
};

/// Lines without control characters. If they do not fit, each part omits its last rows and prints
/// their number, the largest part first.
std::string top_picture(const ClusterView& view, ScreenSize size);

}  // namespace muster::cli::cluster
