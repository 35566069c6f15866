#include "cli/simulate_view.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/units.h"
#include "cli/metric_words.h"
#include "cli/table.h"

namespace muster::cli {

namespace {

using nlohmann::ordered_json;
using simulate::Distribution;
using simulate::milliseconds;
using simulate::TraceOutcast;
using simulate::TraceReport;
using simulate::TraceSummary;

constexpr double kSecondsPerHour = 3600;
/// So many are listed; programs get all of them.
constexpr size_t kOutcastsShown = 3;

std::string dumped(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

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

std::string scenarios_json(const std::vector<simulate::Verdict>& verdicts) {
  ordered_json list = ordered_json::array();
  for (const simulate::Verdict& verdict : verdicts)
    list.push_back({{"section", verdict.section},
                    {"name", verdict.name},
                    {"ok", verdict.difference.empty()},
                    {"difference", verdict.difference}});
  return dumped({{"scenarios", std::move(list)}});
}

std::string openb_json(const simulate::OpenbResult& result) {
  ordered_json runs = ordered_json::array();
  for (const simulate::OpenbRun& run : result.runs)
    runs.push_back({{"seed", run.seed},
                    {"allocated", run.ratio},
                    {"arrived", run.arrived},
                    {"refused", run.refused}});
  return dumped({{"nodes", result.nodes},
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
  text += outcasts_text("still waited when all others had ended", report.stuck);
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
  return dumped(json);
}

}  // namespace muster::cli
