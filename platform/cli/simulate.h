// muster simulate: which of its three experiments, with what.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/call.h"
#include "cli/command_tree.h"
#include "cli/flag_reader.h"
#include "cli/output.h"
#include "simulate/openb.h"
#include "simulate/trace_replay.h"

namespace muster::cli {

struct SimulateScenarios {
  std::string file;
};

struct SimulateOpenb {
  std::string nodes_file;
  std::string pods_file;
  simulate::OpenbOptions options;
};

struct SimulateTrace {
  std::string file;
  simulate::TraceSetup setup;
  std::string policy;  ///< as it was given
  bool per_project = false;
  std::optional<std::string> chart_file;
};

using Simulation = std::variant<SimulateScenarios, SimulateOpenb, SimulateTrace>;

/// `names`: the words that are no flags.
Simulation read_simulate_flags(FlagReader& reader, const std::vector<std::string>& names);

struct SimulateCommand {
  Simulation what;
  Output output = Output::kTable;
};

Result<int> execute(const SimulateCommand& command, const Hooks& hooks);

Command simulate_command();

}  // namespace muster::cli
