// simulate: the scheduler on a virtual clock. No server is asked, and none is started.
#include <variant>

#include "base/files.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/simulate_view.h"
#include "simulate/chart.h"
#include "simulate/scenarios.h"

namespace muster::cli {

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
