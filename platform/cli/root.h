// All commands of muster in one tree, and those on muster itself.
#pragma once

#include <string>
#include <vector>

#include "cli/call.h"
#include "cli/command_tree.h"
#include "cli/output.h"

namespace muster::cli {

struct VersionCommand {
  Output output = Output::kTable;
};

struct CompletionCommand {
  std::string shell;
};

struct HelpCommand {
  std::vector<std::string> path;  ///< of the command; empty: muster itself
  bool asked = true;              ///< false: nothing was asked at all
};

Result<int> execute(const VersionCommand& command, const Hooks& hooks);
Result<int> execute(const CompletionCommand& command, const Hooks& hooks);
Result<int> execute(const HelpCommand& command, const Hooks& hooks);

/// `muster` itself. Made anew by each call.
Command command_tree();

}  // namespace muster::cli
