// simulate: the scheduler on a virtual clock. No server is asked, and none is started.
#include "cli/simulate.h"

#include <charconv>
#include <cmath>
#include <string_view>
#include <variant>

#include "base/files.h"
#include "base/units.h"
#include "cli/command_parts.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/simulate_view.h"
#include "simulate/chart.h"
#include "simulate/scenarios.h"

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

namespace {

Flags experiment_flags() {
  return {{.name = "--scenarios",
           .value = "FILE",
           .help = "run the scenarios of a file and say which come out otherwise than it expects",
           .offer = Offer::kFiles},
          {.name = "--openb",
           .value = "NODES PODS",
           .help = "fill a cluster with pods, two CSV files, and say how much of it is allocated",
           .offer = Offer::kFiles},
          {.name = "--trace",
           .value = "CSV",
           .help = "run a list of jobs (submit_s, duration_s, gpus, project) on a cluster",
           .offer = Offer::kFiles}};
}

Flags cluster_flags() {
  return {{.name = "--nodes", .value = "N", .help = "with --trace: how many nodes there are"},
          {.name = "--gpus-per-node", .value = "G", .help = "GPUs of each node (default: 8)"},
          {.name = "--cpus-per-node",
           .value = "N",
           .help = "CPU cores of each node (default: as many as anybody asks for)"},
          {.name = "--memory-per-node",
           .value = "SIZE",
           .help = "memory of each node (default: as much as anybody asks for)"},
          {.name = "--project",
           .value = "NAME=GPUS[:WEIGHT]",
           .help = "the quota of a project of the trace (default: equal parts)",
           .repeats = true}};
}

Flags policy_flags() {
  return {{.name = "--policy",
           .value = "POLICY",
           .help = "who is next: fair (as the server does it), backfill or fifo (one queue)",
           .choices = {"fair", "backfill", "fifo"},
           .offer = Offer::kChoices},
          {.name = "--checkpoint",
           .help = "evicted jobs go on where they were; without, they start over"},
          {.name = "--per-project", .help = "show each project, too"},
          {.name = "--chart",
           .value = "FILE",
           .help = "draw queue and utilisation over time, as SVG",
           .offer = Offer::kFiles},
          {.name = "--packing",
           .value = "HOW",
           .help = "with --openb: how nodes are chosen (default: fragmentation)",
           .choices = {"fragmentation", "pack", "spread"},
           .offer = Offer::kChoices}};
}

Call read_simulate(Reading& in) {
  Simulation what = read_simulate_flags(in.reader, in.arguments.names);
  return SimulateCommand{.what = std::move(what), .output = in.output()};
}

}  // namespace

Command simulate_command() {
  return {.name = "simulate",
          .help = "the scheduler on a virtual clock: what if there were two more nodes?",
          .read = read_simulate,
          .positionals = {.name = "PODS", .least = 0, .most = 1, .offer = Offer::kFiles},
          .flags = experiment_flags() + cluster_flags() + policy_flags() + output_flag(),
          .example = "muster simulate --trace jobs.csv --nodes 4 --chart queue.svg"};
}

namespace {

constexpr size_t kMostInput = size_t{256} << 20;
constexpr mode_t kForAll = 0644;

/// An error of a file's content begins with its name.
Result<std::string> about(const std::string& file, base::Error error) {
  error.what = "'" + file + "': " + error.what;
  return error;
}

Result<int> simulate_one(const SimulateScenarios& command, Output output) {
  MUSTER_TRY(const std::string text, base::read_file(command.file, kMostInput));
  const auto scenarios = simulate::parse_scenarios(text);
  if (!scenarios) return about(command.file, scenarios.error()).error();
  const std::vector<simulate::Verdict> verdicts = simulate::run_scenarios(*scenarios);
  MUSTER_CHECK(show(output, simulate::report_of(verdicts), scenarios_json(verdicts)));
  return simulate::all_as_expected(verdicts) ? kExitDone : kExitFailed;
}

Result<int> simulate_one(const SimulateOpenb& command, Output output) {
  MUSTER_TRY(const std::string nodes, base::read_file(command.nodes_file, kMostInput));
  MUSTER_TRY(const std::string pods, base::read_file(command.pods_file, kMostInput));
  MUSTER_TRY(const auto result, simulate::replay_openb(nodes, pods, command.options));
  MUSTER_CHECK(show(output, simulate::openb_text(result), openb_json(result)));
  return kExitDone;
}

Result<int> simulate_one(const SimulateTrace& command, Output output) {
  MUSTER_TRY(const std::string text, base::read_file(command.file, kMostInput));
  const auto jobs = simulate::parse_trace(text);
  if (!jobs) return about(command.file, jobs.error()).error();
  MUSTER_TRY(const auto report, simulate::replay(*jobs, command.setup));
  if (command.chart_file)
    MUSTER_CHECK(base::write_file(*command.chart_file,
                                  simulate::chart_of(report, trace_title(command)), kForAll));
  MUSTER_CHECK(show(output, trace_text(command, report), trace_json(command, report)));
  return kExitDone;
}

}  // namespace

Result<int> execute(const SimulateCommand& command, const Hooks&) {
  return std::visit([&](const auto& what) { return simulate_one(what, command.output); },
                    command.what);
}

}  // namespace muster::cli
