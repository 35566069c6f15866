#include "cli/simulate_flags.h"

#include <charconv>
#include <cmath>
#include <string_view>

#include "base/units.h"

namespace muster::cli {

namespace {

using schedule::Packing;
using schedule::Policy;

const std::vector<std::string> kExperiments = {"--scenarios", "--openb", "--trace"};

struct FlagOwner {
  const char* flag;
  const char* experiment;
};

constexpr FlagOwner kOwners[] = {
    {"--packing", "--openb"},         {"--nodes", "--trace"},
    {"--gpus-per-node", "--trace"},   {"--cpus-per-node", "--trace"},
    {"--memory-per-node", "--trace"}, {"--project", "--trace"},
    {"--policy", "--trace"},          {"--checkpoint", "--trace"},
    {"--per-project", "--trace"},     {"--chart", "--trace"},
};

/// "team-a=8", "team-a=8:0.5".
void read_project(const std::string& text, FlagReader& reader, simulate::TraceSetup& setup) {
  const std::string form = "is not written NAME=GPUS or NAME=GPUS:WEIGHT";
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    reader.fault("--project", "'" + text + "' " + form);
    return;
  }
  const size_t colon = text.find(':', equals);
  simulate::TraceProject project{.name = text.substr(0, equals)};
  const auto quota = base::parse_milli(text.substr(equals + 1, colon - equals - 1));
  if (quota) {
    project.quota_milli = *quota;
  } else {
    reader.fault("--project", "'" + text + "' " + form + ": " + quota.error().what);
  }
  if (colon != std::string::npos) {
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data() + colon + 1, last, project.weight);
    if (error != std::errc{} || end != last || !std::isfinite(project.weight) || project.weight < 0)
      reader.fault("--project", "'" + text + "' has no weight such as 1, 2.5 or 0");
  }
  setup.projects.push_back(std::move(project));
}

SimulateTrace read_trace(FlagReader& reader) {
  SimulateTrace trace{.file = reader.text("--trace")};
  if (!reader.has("--nodes"))
    reader.fault("--nodes", "is missing: of how many nodes is the cluster?");
  trace.setup.nodes = reader.number("--nodes", 1);
  trace.setup.gpus_per_node = reader.number("--gpus-per-node", trace.setup.gpus_per_node);
  if (reader.has("--cpus-per-node")) {
    const auto cpus = base::parse_cpus(reader.text("--cpus-per-node"));
    if (cpus)
      trace.setup.cpu_milli_per_node = *cpus;
    else
      reader.fault("--cpus-per-node", cpus.error().what);
  }
  trace.setup.memory_per_node = reader.bytes("--memory-per-node", 0);
  for (const std::string& project : reader.texts("--project"))
    read_project(project, reader, trace.setup);
  trace.policy = reader.choice("--policy", {"fair", "backfill", "fifo"});
  trace.setup.policy = trace.policy == "fifo"       ? Policy::kFifo
                       : trace.policy == "backfill" ? Policy::kBackfill
                                                    : Policy::kFair;
  trace.setup.checkpoint = reader.has("--checkpoint");
  trace.per_project = reader.has("--per-project");
  if (reader.has("--chart")) trace.chart_file = reader.text("--chart");
  return trace;
}

SimulateOpenb read_openb(FlagReader& reader, const std::vector<std::string>& names) {
  SimulateOpenb openb{.nodes_file = reader.text("--openb")};
  if (names.size() == 1) {
    openb.pods_file = names.front();
  } else {
    reader.fault("--openb", "takes two files, the nodes and the pods: --openb NODES PODS");
  }
  const std::string packing = reader.choice("--packing", {"fragmentation", "pack", "spread"});
  if (packing == "pack") openb.options.packing = Packing::kPack;
  if (packing == "spread") openb.options.packing = Packing::kSpread;
  return openb;
}

/// Which experiment is asked for; empty, and a fault, where it is none or several.
std::string experiment_of(FlagReader& reader) {
  std::string chosen;
  for (const std::string& flag : kExperiments) {
    if (!reader.has(flag)) continue;
    if (!chosen.empty()) {
      reader.fault(flag, "does not go with " + chosen + ": simulate one at a time");
      return "";
    }
    chosen = flag;
  }
  if (chosen.empty())
    reader.fault(
        "", "say what to simulate: --scenarios FILE, --openb NODES PODS or --trace CSV --nodes N");
  return chosen;
}

}  // namespace

Simulation read_simulate_flags(FlagReader& reader, const std::vector<std::string>& names) {
  const std::string experiment = experiment_of(reader);
  if (experiment.empty()) return {};
  for (const auto& [flag, owner] : kOwners)
    if (reader.has(flag) && experiment != owner)
      reader.fault(flag, std::string("goes with ") + owner);
  if (experiment == "--openb") return read_openb(reader, names);
  const std::string too_many = "' is one word too many: " + experiment + " takes one file";
  for (const std::string& name : names)
    reader.fault("", std::string("'").append(name).append(too_many));
  if (experiment == "--trace") return read_trace(reader);
  return SimulateScenarios{.file = reader.text("--scenarios")};
}

}  // namespace muster::cli
