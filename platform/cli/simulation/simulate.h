// muster simulate: reads which of three experiments to run, and prints the result.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/command/arguments.h"
#include "cli/command/call.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "simulate/scenarios.h"
#include "simulate/trace.h"
#include "simulate/trace_replay.h"

namespace muster::cli::simulation {

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
  std::string policy;  ///< as given
  bool per_project = false;
  std::optional<std::string> chart_file;
};

using Simulation = std::variant<SimulateScenarios, SimulateOpenb, SimulateTrace>;

/// `names`: the positional words.
Simulation read_simulate_flags(FlagReader& reader, const std::vector<std::string>& names);

struct SimulateCommand {
  Simulation what;
  Output output = Output::kTable;
};

Result<int> execute(const SimulateCommand& command, const Hooks& hooks);

Command simulate_command();

std::string scenarios_json(const std::vector<simulate::ScenarioResult>& verdicts);
std::string openb_json(const simulate::OpenbResult& result);

std::string trace_text(const SimulateTrace& command, const simulate::TraceReport& report);
std::string trace_json(const SimulateTrace& command, const simulate::TraceReport& report);
/// The title of the chart: "4 nodes of 8 GPUs, policy fair".
std::string trace_title(const SimulateTrace& command);

}  // namespace muster::cli::simulation
