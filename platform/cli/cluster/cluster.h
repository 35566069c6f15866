// The commands on what jobs share: node, top.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command/call.h"
#include "cli/command/command.h"
#include "cli/common/output.h"

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

}  // namespace muster::cli::cluster
