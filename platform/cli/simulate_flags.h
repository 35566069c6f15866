// The flags of `muster simulate`: which of its three experiments, with what.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/flag_reader.h"
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

}  // namespace muster::cli
