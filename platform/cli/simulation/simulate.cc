// simulate: runs the scheduler on a virtual clock, without a server.
#include "cli/simulation/simulate.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <variant>

#include "base/files.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command/command.h"
#include "cli/common/format.h"
#include "cli/common/output.h"
#include "cli/connection/connection.h"
#include "simulate/scenarios.h"
#include "simulate/trace_replay.h"

namespace muster::cli::simulation {

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
    reader.fault("--nodes", "is missing; give the number of nodes of the cluster");
  trace.setup.nodes = reader.number_between("--nodes", 1, 1, simulate::kMostTraceNodes);
  trace.setup.gpus_per_node = reader.number("--gpus-per-node", trace.setup.gpus_per_node);
  trace.setup.cpu_milli_per_node = reader.cpus("--cpus-per-node", trace.setup.cpu_milli_per_node);
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
    reader.fault("--openb", "needs two files: --openb NODES PODS");
  }
  const std::string packing = reader.choice("--packing", {"fragmentation", "pack", "spread"});
  if (packing == "pack") openb.options.packing = Packing::kPack;
  if (packing == "spread") openb.options.packing = Packing::kSpread;
  return openb;
}

/// The requested experiment; empty, with a fault, if none or several are requested.
std::string experiment_of(FlagReader& reader) {
  std::string chosen;
  for (const std::string& flag : kExperiments) {
    if (!reader.has(flag)) continue;
    if (!chosen.empty()) {
      reader.fault(flag, "cannot be used with " + chosen + "");
      return "";
    }
    chosen = flag;
  }
  if (chosen.empty())
    reader.fault(
        "",
        "nothing to simulate; give --scenarios FILE, --openb NODES PODS or --trace CSV --nodes N");
  return chosen;
}

}  // namespace

Simulation read_simulate_flags(FlagReader& reader, const std::vector<std::string>& names) {
  const std::string experiment = experiment_of(reader);
  if (experiment.empty()) return {};
  for (const auto& [flag, owner] : kOwners)
    if (reader.has(flag) && experiment != owner)
      reader.fault(flag, std::string("can be used only with ") + owner);
  if (experiment == "--openb") return read_openb(reader, names);
  const std::string too_many = "' is unexpected: " + experiment + " takes one file";
  for (const std::string& name : names)
    reader.fault("", std::string("'").append(name).append(too_many));
  if (experiment == "--trace") return read_trace(reader);
  return SimulateScenarios{.file = reader.text("--scenarios")};
}

namespace {

Flags experiment_flags() {
  return {
      {.name = "--scenarios",
       .value = "FILE",
       .help = "run the scenarios of a file and report those whose result differs from the "
               "expected one",
       .offer = Offer::kFiles},
      {.name = "--openb",
       .value = "NODES PODS",
       .help = "fill a cluster from two CSV files (nodes, pods) and report how much is allocated",
       .offer = Offer::kFiles},
      {.name = "--trace",
       .value = "CSV",
       .help = "run a list of jobs (CSV: submit_s, duration_s, gpus, project) on a cluster",
       .offer = Offer::kFiles}};
}

Flags cluster_flags() {
  return {{.name = "--nodes", .value = "N", .help = "with --trace: number of nodes"},
          {.name = "--gpus-per-node", .value = "G", .help = "GPUs of each node (default: 8)"},
          {.name = "--cpus-per-node",
           .value = "N",
           .help = "CPU cores of each node (default: enough for all jobs)"},
          {.name = "--memory-per-node",
           .value = "SIZE",
           .help = "memory of each node (default: enough for all jobs)"},
          {.name = "--project",
           .value = "NAME=GPUS[:WEIGHT]",
           .help = "GPU quota of a project of the trace (default: equal quotas)",
           .repeats = true}};
}

Flags policy_flags() {
  return {
      {.name = "--policy",
       .value = "POLICY",
       .help = "order of jobs: fair (as on a server), backfill or fifo (one queue)",
       .choices = {"fair", "backfill", "fifo"},
       .offer = Offer::kChoices},
      {.name = "--checkpoint",
       .help =
           "evicted jobs continue where they were (default: they start again from the beginning)"},
      {.name = "--per-project", .help = "also show each project"},
      {.name = "--chart",
       .value = "FILE",
       .help = "write a chart of queue and utilisation over time to this file (SVG)",
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
          .help =
              "simulate the scheduler on a virtual clock with a trace, scenarios or a cluster of "
              "your own",
          .read = read_simulate,
          .positionals = {.name = "PODS", .least = 0, .most = 1, .offer = Offer::kFiles},
          .flags = experiment_flags() + cluster_flags() + policy_flags() + output_flag(),
          .example = "muster simulate --trace jobs.csv --nodes 4 --chart queue.svg"};
}

namespace {

constexpr size_t kMostInput = size_t{256} << 20;
constexpr mode_t kForAll = 0644;

/// Adds the file's name to an error about its content.
Result<std::string> about(const std::string& file, base::Error error) {
  error.what = "'" + file + "': " + error.what;
  return error;
}

Result<int> simulate_one(const SimulateScenarios& command, Output output) {
  MUSTER_TRY(const std::string text, base::read_file(command.file, kMostInput));
  const auto scenarios = simulate::parse_scenarios(text);
  if (!scenarios) return about(command.file, scenarios.error()).error();
  const std::vector<simulate::ScenarioResult> verdicts = simulate::run_scenarios(*scenarios);
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

namespace {

using nlohmann::ordered_json;
using simulate::Distribution;
using simulate::milliseconds;
using simulate::TraceOutcast;
using simulate::TraceReport;
using simulate::TraceSummary;

constexpr double kSecondsPerHour = 3600;
/// The number of unfinished jobs in the text output; JSON lists all.
constexpr size_t kOutcastsShown = 3;

double seconds_of(milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::string gpus_text(int64_t milli) {
  return milli % 1000 == 0 ? std::to_string(milli / 1000)
                           : one_decimal(static_cast<double>(milli) / 1000);
}

ordered_json to_json(const Distribution& distribution) {
  return {{"mean", seconds_of(distribution.mean)},
          {"p50", seconds_of(distribution.p50)},
          {"p90", seconds_of(distribution.p90)},
          {"p99", seconds_of(distribution.p99)}};
}

ordered_json to_json(const TraceSummary& summary) {
  return {{"jobs", summary.jobs},
          {"waiting_s", to_json(summary.waiting)},
          {"completion_s", to_json(summary.completion)},
          {"gpu_seconds", summary.gpu_seconds},
          {"lost_gpu_seconds", summary.lost_gpu_seconds},
          {"preemptions", summary.preemptions},
          {"moves", summary.moves},
          {"ended_by_time_limit", summary.limited}};
}

ordered_json to_json(const std::vector<TraceOutcast>& outcasts) {
  ordered_json list = ordered_json::array();
  for (const TraceOutcast& outcast : outcasts)
    list.push_back({{"line", outcast.line}, {"reason", outcast.reason}});
  return list;
}

std::vector<std::string> cells(const std::string& name, const Distribution& distribution) {
  return {name, base::format_duration(distribution.mean), base::format_duration(distribution.p50),
          base::format_duration(distribution.p90), base::format_duration(distribution.p99)};
}

std::string times_table(const TraceSummary& summary) {
  Table table({{""}, {"MEAN", true}, {"P50", true}, {"P90", true}, {"P99", true}});
  table.add(cells("waiting", summary.waiting));
  table.add(cells("completion", summary.completion));
  return table.to_string();
}

std::string counts_table(const TraceReport& report) {
  const std::string lost =
      report.all.lost_gpu_seconds > 0
          ? ", " + one_decimal(report.all.lost_gpu_seconds / kSecondsPerHour) + " GPU hours lost"
          : "";
  Table table({{"utilisation"}, {one_decimal(100 * report.utilisation) + " %"}});
  table.add({"makespan", base::format_duration(report.makespan)});
  table.add({"preemptions", std::to_string(report.all.preemptions) + lost});
  table.add({"moves", std::to_string(report.all.moves)});
  if (report.all.limited > 0)
    table.add({"ended by their time limit", std::to_string(report.all.limited)});
  return table.to_string();
}

std::string project_summary_table(const TraceReport& report) {
  Table table({{"PROJECT"},
               {"QUOTA", true},
               {"JOBS", true},
               {"WAITING MEAN", true},
               {"P90", true},
               {"COMPLETION MEAN", true},
               {"P90", true},
               {"GPU HOURS", true},
               {"PREEMPTIONS", true}});
  for (const TraceReport::OfProject& project : report.projects) {
    const TraceSummary& summary = project.summary;
    table.add(
        {project.name, gpus_text(project.quota_milli), std::to_string(summary.jobs),
         base::format_duration(summary.waiting.mean), base::format_duration(summary.waiting.p90),
         base::format_duration(summary.completion.mean),
         base::format_duration(summary.completion.p90),
         one_decimal(summary.gpu_seconds / kSecondsPerHour), std::to_string(summary.preemptions)});
  }
  return table.to_string();
}

std::string outcasts_text(const std::string& what, const std::vector<TraceOutcast>& outcasts) {
  if (outcasts.empty()) return "";
  std::string text = "\n" + std::to_string(outcasts.size()) + " " +
                     (outcasts.size() == 1 ? "job " : "jobs ") + what + ":\n";
  for (size_t i = 0; i < outcasts.size() && i < kOutcastsShown; ++i)
    text += "  line " + std::to_string(outcasts[i].line) + ": " + outcasts[i].reason + "\n";
  if (outcasts.size() > kOutcastsShown) text += "  ...\n";
  return text;
}

}  // namespace

std::string scenarios_json(const std::vector<simulate::ScenarioResult>& verdicts) {
  ordered_json list = ordered_json::array();
  for (const simulate::ScenarioResult& verdict : verdicts)
    list.push_back({{"section", verdict.section},
                    {"name", verdict.name},
                    {"ok", verdict.difference.empty()},
                    {"difference", verdict.difference}});
  return base::json_text(ordered_json{{"scenarios", std::move(list)}});
}

std::string openb_json(const simulate::OpenbResult& result) {
  ordered_json runs = ordered_json::array();
  for (const simulate::OpenbRun& run : result.runs)
    runs.push_back({{"seed", run.seed},
                    {"allocated", run.ratio},
                    {"arrived", run.arrived},
                    {"refused", run.refused}});
  return base::json_text(ordered_json{{"nodes", result.nodes},
                                      {"gpus", result.gpus},
                                      {"pods", result.pods},
                                      {"mean", result.mean},
                                      {"lowest", result.lowest},
                                      {"highest", result.highest},
                                      {"runs", std::move(runs)}});
}

std::string trace_title(const SimulateTrace& command) {
  const simulate::TraceSetup& setup = command.setup;
  return base::count_text(setup.nodes, "node") + " of " + std::to_string(setup.gpus_per_node) +
         " GPUs, policy " + command.policy;
}

std::string trace_text(const SimulateTrace& command, const TraceReport& report) {
  std::string text = base::count_text(report.all.jobs, "job") + " on " + trace_title(command) +
                     "\n\n" + times_table(report.all) + "\n" + counts_table(report);
  if (command.per_project) text += "\n" + project_summary_table(report);
  text += outcasts_text("could never run on these nodes", report.refused);
  text += outcasts_text("still waiting when all others had ended", report.stuck);
  return text;
}

std::string trace_json(const SimulateTrace& command, const TraceReport& report) {
  ordered_json json{{"policy", command.policy},
                    {"nodes", command.setup.nodes},
                    {"gpus_per_node", command.setup.gpus_per_node},
                    {"utilisation", report.utilisation},
                    {"makespan_s", seconds_of(report.makespan)}};
  json.update(to_json(report.all));
  json["projects"] = ordered_json::array();
  for (const TraceReport::OfProject& project : report.projects) {
    ordered_json entry{{"name", project.name},
                       {"quota_gpus", static_cast<double>(project.quota_milli) / 1000}};
    entry.update(to_json(project.summary));
    json["projects"].push_back(std::move(entry));
  }
  json["refused"] = to_json(report.refused);
  json["stuck"] = to_json(report.stuck);
  return base::json_text(json);
}

}  // namespace muster::cli::simulation
