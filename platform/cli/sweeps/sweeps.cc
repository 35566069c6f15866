#include "cli/sweeps/sweeps.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "api/sweep_wire.h"
#include "api/wire.h"
#include "base/json_text.h"
#include "base/text.h"
#include "cli/common/sweep_view.h"
#include "cli/common/terminal.h"
#include "cli/common/typed_input.h"
#include "cli/jobs/arrays.h"
#include "cli/jobs/jobs.h"
#include "cli/jobs/submit_file.h"
#include "cli/metrics/chart.h"
#include "cli/spec/spec_file.h"
#include "cli/spec/spec_flags.h"
#include "config/yaml.h"
#include "record/type.h"

namespace muster::cli::sweeps {

using base::Error;
using base::ErrorCode;
using sweep::SweepSpec;
using sweep::SweepSummary;
using sweep::Trial;

// --- reading

namespace {

/// The rows of the section `sweep` that have a flag.
std::vector<const record::Row*> rows_with_flags() {
  std::vector<const record::Row*> rows;
  for (const record::Row& row : record::table_for<SweepSpec>().rows()) {
    if (row.notes.flag.name != nullptr) rows.push_back(&row);
  }
  return rows;
}

Flags search_flags() {
  Flags flags = {{.name = "--param",
                  .value = "NAME=VALUES",
                  .help = "a parameter: 16,32,64 or 0..0.5 or int:1..8 or log:1e-4..1e-1",
                  .repeats = true,
                  .group = "sweep"}};
  for (const record::Row* const row : rows_with_flags()) {
    const record::Flag& flag = row->notes.flag;
    std::vector<std::string> choices = row->type->words();
    const Offer offer = choices.empty() ? Offer::kNothing : Offer::kChoices;
    flags.push_back({.name = flag.name,
                     .value = flag.value,
                     .help = flag.help,
                     .choices = std::move(choices),
                     .offer = offer,
                     .group = "sweep"});
  }
  flags.push_back({.name = "--dry-run",
                   .help = "show the trials, their cost and when they could start; start nothing",
                   .group = "sweep"});
  return flags;
}

constexpr std::array<const char*, 4> kKindsOfTrials{"single", "mpi", "grpc", "torch"};

/// The flags of a job of any kind, without those that a sweep replaces: an array has --max-failures,
/// too.
Flags job_flags_of_trial() {
  const Flags own = search_flags();
  Flags flags;
  for (const char* const kind : kKindsOfTrials) {
    for (Flag& flag : jobs::flags_of_job(kind)) {
      const bool is_new = std::none_of(flags.begin(), flags.end(),
                                       [&](const Flag& other) { return other.name == flag.name; });
      if (is_new) flags.push_back(std::move(flag));
    }
  }
  std::erase_if(flags, [&](const Flag& flag) {
    constexpr std::array<std::string_view, 5> kNotOfTrials{"--hold", "--array", "--each-line",
                                                           "--each-json", "--idempotency-key"};
    const auto is_same = [&](const auto& name) { return flag.name == name; };
    return std::any_of(kNotOfTrials.begin(), kNotOfTrials.end(), is_same) ||
           std::any_of(own.begin(), own.end(),
                       [&](const Flag& other) { return other.name == flag.name; });
  });
  return flags;
}

std::string flag_of_key(const std::string& field) {
  if (record::is_within(field, "parameters")) return "--param";
  for (const record::Row* const row : rows_with_flags()) {
    if (record::is_within(field, row->name)) return row->notes.flag.name;
  }
  return field;
}

/// A fault of a parameter, with the flag as it was typed: "--param 'lr=1..0': the upper end ...".
base::Fault fault_of_param(const base::Fault& fault,
                           const std::vector<std::pair<std::string, std::string>>& keys) {
  const std::pair<std::string, std::string>* typed = nullptr;
  for (const auto& key : keys) {
    const bool is_longer = typed == nullptr || key.first.size() > typed->first.size();
    if (record::is_within(fault.field, key.first) && is_longer) typed = &key;
  }
  if (typed == nullptr) return {.field = "--param", .what = fault.what};
  const std::string name = typed->first.substr(typed->first.find('.') + 1);
  return {.field = "--param",
          .what = base::fault_message(base::in_quotes(name + "=" + typed->second), fault.what)};
}

std::vector<std::pair<std::string, std::string>> read_keys(Reading& in) {
  std::vector<std::pair<std::string, std::string>> keys;
  std::set<std::string> names;
  for (const std::string& text : in.reader.texts("--param")) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      in.reader.fault("--param", "'" + text + "' is not NAME=VALUES, as in lr=log:1e-4..1e-1");
      continue;
    }
    const std::string name = text.substr(0, equals);
    if (!names.insert(name).second) {
      in.reader.fault("--param", base::in_quotes(name) +
                                     " is given twice; give its values in one " + "list, as in " +
                                     name + "=1,2,3");
      continue;
    }
    keys.emplace_back("parameters." + name, text.substr(equals + 1));
  }
  for (const record::Row* const row : rows_with_flags()) {
    const char* const flag = row->notes.flag.name;
    if (in.reader.has(flag)) keys.emplace_back(row->name, in.reader.text(flag));
  }
  return keys;
}

/// Flags of other kinds of jobs are faults.
job::Kind read_kind_of_trials(Reading& in) {
  const std::string kind =
      in.reader.has("--kind")
          ? in.reader.choice("--kind", {kKindsOfTrials.begin(), kKindsOfTrials.end()})
          : "single";
  const auto known = job::kind_of(kind);
  if (!known) return job::Kind::kSingle;
  const Flags flags = jobs::flags_of_job(kind);
  for (const Flag& flag : job_flags_of_trial()) {
    const bool is_of_kind = std::any_of(flags.begin(), flags.end(),
                                        [&](const Flag& other) { return other.name == flag.name; });
    if (in.reader.has(flag.name) && !is_of_kind) {
      in.reader.fault(flag.name, "is not a flag of '" + kind + "' jobs; --kind sets another kind");
    }
  }
  return *known;
}

Call read_sweep_create(Reading& in) {
  SweepCreateCommand command{.dry_run = in.reader.has("--dry-run"), .output = in.output()};
  command.keys = read_keys(in);
  command.spec.job =
      spec::read_submit_spec(read_kind_of_trials(in), in.arguments, in.caller, in.reader);
  command.workspace = spec::read_workspace_flags(in.reader);
  const bool is_job_valid = in.reader.ok();
  const std::vector<base::Fault> misread = set_sweep_keys(command.keys, command.spec);
  const auto report = [&](const base::Fault& fault) {
    const base::Fault of_param = fault_of_param(fault, command.keys);
    const std::string flag = flag_of_key(fault.field);
    in.reader.fault(flag, flag == of_param.field ? of_param.what : fault.what);
  };
  for (const base::Fault& fault : misread) report(fault);
  const FlagReader unread = in.reader;
  for (const base::Fault& fault : sweep::validate(command.spec)) {
    const bool is_of_job = fault.field.starts_with("job.");
    if (is_of_job) {
      if (is_job_valid) in.reader.fault(fault.field.substr(4), fault.what);
      continue;
    }
    // The other parameters are checked even if one could not be read.
    const bool is_param = fault.field.starts_with("parameters.");
    const bool is_known = is_param ? config::follows_from_unread(fault.field, misread)
                                   : unread.is_at_fault(flag_of_key(fault.field));
    if (!is_known) report(fault);
  }
  return command;
}

Call read_sweep_file(Reading& in) {
  SweepCreateCommand command{.dry_run = in.reader.has("--dry-run"), .output = in.output()};
  command.file = in.reader.text("--file");
  command.name = in.reader.text("--name");
  command.settings = in.reader.texts("--set");
  command.keys = read_keys(in);
  if (!in.reader.has("--file") && in.reader.ok()) {
    in.reader.fault("", "nothing to do; use 'sweep create NAME', 'sweep -f FILE' or 'sweep list'");
  }
  return command;
}

Call read_sweep_list(Reading& in) {
  return SweepListCommand{.project = in.project_of_job(), .output = in.list_output()};
}

Call read_sweep_get(Reading& in) {
  return SweepGetCommand{.name = in.name("sweep"),
                         .project = in.project_of_job(),
                         .chart = in.reader.has("--chart"),
                         .output = in.output()};
}

Call read_sweep_best(Reading& in) {
  return SweepBestCommand{
      .name = in.name("sweep"), .project = in.project_of_job(), .output = in.output()};
}

Call read_sweep_wait(Reading& in) {
  SweepWaitCommand command{.name = in.name("sweep"), .project = in.project_of_job()};
  if (in.reader.has("--timeout")) command.timeout = in.reader.duration("--timeout", {});
  return command;
}

template <const char* const& action>
Call read_sweep_change(Reading& in) {
  return SweepChangeCommand{
      .names = in.names("sweep"), .project = in.project_of_job(), .action = action};
}
constexpr const char* kSweepStop = "stop";
constexpr const char* kSweepPause = "pause";
constexpr const char* kSweepResume = "resume";

Call read_sweep_delete(Reading& in) {
  return SweepDeleteCommand{.names = in.names("sweep"),
                            .project = in.project_of_job(),
                            .ignore_missing = in.reader.has("--ignore-missing")};
}

Flags sweep_project_flag() {
  return {{.name = "--project",
           .value = "PROJECT",
           .help = "project of the sweep, if several projects have a sweep of this name",
           .offer = Offer::kProjects}};
}

Command change_command(const char* name, const char* help, Call (*read)(Reading&)) {
  return {.name = name,
          .help = help,
          .read = read,
          .positionals = some_of(Offer::kNothing),
          .flags = sweep_project_flag(),
          .example = "muster sweep " + std::string(name) + " lr"};
}

}  // namespace

Command sweep_command() {
  const Flags file = {{.name = "--file",
                       .letter = "-f",
                       .value = "FILE",
                       .help = "job file (YAML) with a section `sweep`; - reads standard input",
                       .offer = Offer::kFiles},
                      {.name = "--name", .value = "NAME", .help = "name of the sweep"},
                      {.name = "--set",
                       .value = "KEY=VALUE",
                       .help = "set any key of the job file, as in resources.gpus=1",
                       .repeats = true}};
  return {
      .name = "sweep",
      .help = "search for the best parameters of a job: create, list, get, best, stop, delete",
      .read = read_sweep_file,
      .flags = file + search_flags() + output_flag(),
      .commands =
          {{.name = "create",
            .help = "create a sweep and start its first trials",
            .read = read_sweep_create,
            .positionals = new_name(),
            .takes_program = true,
            .flags = spec::in_groups(
                search_flags() +
                Flags{{.name = "--kind",
                       .value = "KIND",
                       .help = "kind of the trials: single (the default), mpi, grpc or torch",
                       .choices = {kKindsOfTrials.begin(), kKindsOfTrials.end()},
                       .offer = Offer::kChoices}} +
                job_flags_of_trial() + output_flag()),
            .example = "muster sweep create lr --param lr=log:1e-4..1e-1 --metric accuracy "
                       "--max-trials 16 -- ./train --lr {lr}",
            .see_also = "muster sweep get, muster sweep best"},
           {.name = "list",
            .alias = "ls",
            .help = "list sweeps",
            .read = read_sweep_list,
            .flags = Flags{{.name = "--project",
                            .value = "PROJECT",
                            .help = "only sweeps of this project",
                            .offer = Offer::kProjects}} +
                     list_output_flag(),
            .example = "muster sweep list"},
           {.name = "get",
            .help = "show a sweep and its trials, best first",
            .read = read_sweep_get,
            .positionals = one_of(Offer::kNothing),
            .flags =
                Flags{{.name = "--chart", .help = "draw the metric of the best trials over time"}} +
                sweep_project_flag() + output_flag(),
            .example = "muster sweep get lr --chart"},
           {.name = "best",
            .help = "print the command that runs the best trial again",
            .read = read_sweep_best,
            .positionals = one_of(Offer::kNothing),
            .flags = sweep_project_flag() + output_flag(),
            .example = "muster sweep best lr"},
           {.name = "wait",
            .help = "wait until a sweep has ended; fails if it did not succeed",
            .read = read_sweep_wait,
            .positionals = one_of(Offer::kNothing),
            .flags =
                Flags{{.name = "--timeout",
                       .value = "TIME",
                       .help =
                           "exit with code 124 after this time, as in 30m; the sweep continues"}} +
                sweep_project_flag(),
            .example = "muster sweep wait lr --timeout 1h"},
           change_command("stop", "stop a sweep and all its trials", read_sweep_change<kSweepStop>),
           change_command("pause", "let running trials run on, and start no other",
                          read_sweep_change<kSweepPause>),
           change_command("resume", "continue a paused sweep", read_sweep_change<kSweepResume>),
           {.name = "delete",
            .alias = "rm",
            .help = "delete an ended sweep with the jobs of its trials",
            .read = read_sweep_delete,
            .positionals = some_of(Offer::kNothing),
            .flags = sweep_project_flag() + ignore_missing_flag("a sweep"),
            .example = "muster sweep delete lr"}},
      .example = "muster sweep -f sweep.yaml --dry-run",
      .see_also = "muster submit --array, for jobs that differ in an index"};
}

// --- executing

namespace {

/// The sweep, and the files of its trials.
struct SweepToCreate {
  SweepSpec spec;
  std::optional<spec::WorkspaceOptions> workspace;
};

Result<SweepToCreate> sweep_of(const SweepCreateCommand& command, const Hooks& hooks) {
  if (!command.file) return SweepToCreate{.spec = command.spec, .workspace = command.workspace};
  MUSTER_TRY(const std::string text, read_flag_file(*command.file));
  MUSTER_TRY(const Caller caller, this_caller(hooks.context));
  MUSTER_TRY(
      SweepFile file,
      parse_sweep_file(text, *command.file == "-" ? "standard input" : *command.file,
                       spec::default_spec(caller), command.keys, command.name, command.settings));
  SweepToCreate made{.spec = std::move(file.spec), .workspace = {}};
  if (file.workspace) made.workspace = jobs::options_of(*file.workspace, *command.file);
  return made;
}

/// Sends the files of the trials' workspace, if any: all trials share one tree.
Result<void> send_sweep_files(Connection& connection, SweepToCreate& made) {
  jobs::Submission trial{.spec = std::move(made.spec.job), .workspace = made.workspace};
  const auto sent = jobs::send_files(connection, trial);
  made.spec.job = std::move(trial.spec);
  return sent;
}

/// The plan, and when the first trial could start.
Result<int> show_plan(Connection& connection, const SweepSpec& spec, Output output) {
  MUSTER_TRY(const sweep::SweepPlan plan,
             connection.call([&](api::Client& client) { return client.plan_sweep(spec); }));
  const job::JobSpec first = sweep::trial_job(spec, 1, 0);
  MUSTER_TRY(const job::Forecast forecast,
             connection.call([&](api::Client& client) { return client.forecast(first); }));
  nlohmann::ordered_json document = {
      {"plan", base::parse_ordered_json(api::sweep_plan_to_json(plan))},
      {"first_trial", base::parse_ordered_json(api::forecast_to_json(forecast))}};
  MUSTER_CHECK(show(output,
                    plan_page(spec, plan) + "\nThe first trial:\n" +
                        jobs::forecast_page(first, forecast, base::SystemClock().now()),
                    base::json_text(document)));
  return kExitDone;
}

Result<sweep::Sweep> get_sweep(Connection& connection, const std::string& name) {
  return connection.call([&](api::Client& client) { return client.sweep(name); });
}

constexpr size_t kMostCurves = 8;

/// The metric of the best trials over time, from the start of each.
Result<std::string> chart_of(Connection& connection, const sweep::Sweep& sweep) {
  connection.set_project(sweep.summary.project);
  metrics::Chart chart{
      .title = sweep.summary.metric, .unit = unit_of(sweep.summary.metric), .series = {}};
  for (const Trial& trial : sweep.trials) {
    if (chart.series.size() >= kMostCurves) break;
    const std::string name = sweep::trial_name(sweep.summary.name, trial.number);
    const auto series = connection.call([&](api::Client& client) {
      return client.metrics(name, {.metrics = {sweep.summary.metric}});
    });
    if (!series || series->empty() || series->front().points.empty()) continue;
    std::vector<job::MetricPoint> points = series->front().points;
    const base::Time begin = points.front().time;
    for (job::MetricPoint& point : points) point.time = base::Time(point.time - begin);
    chart.series.push_back({.label = name, .points = std::move(points)});
  }
  if (chart.series.empty()) return std::string("\nno value yet\n");
  constexpr int kColumns = 80;
  const int columns = size_of_terminal(STDOUT_FILENO).value_or(std::pair(24, kColumns)).second;
  const bool unicode = shows_unicode(::getenv("LC_ALL"), ::getenv("LC_CTYPE"), ::getenv("LANG"));
  return "\n" + metrics::chart_text({chart}, base::Time{},
                                    {.columns = static_cast<size_t>(columns),
                                     .unicode = unicode,
                                     .colour = terminal_of(STDOUT_FILENO).colour});
}

}  // namespace

Result<int> execute(const SweepCreateCommand& command, const Hooks& hooks) {
  MUSTER_TRY(SweepToCreate creation, sweep_of(command, hooks));
  MUSTER_TRY(Connection connection, connect(hooks));
  if (command.dry_run) return show_plan(connection, creation.spec, command.output);
  MUSTER_CHECK(send_sweep_files(connection, creation));
  MUSTER_TRY(const sweep::Sweep made, connection.client().create_sweep(creation.spec));
  const std::string& name = made.summary.name;
  MUSTER_CHECK(
      show(command.output,
           "created sweep " + name + " of " + base::count_text(made.summary.trials, "trial") + "\n",
           api::sweep_to_json(made)));
  if (command.output == Output::kTable) {
    std::cerr << "  to follow it: muster sweep get " << name << std::endl;
  }
  return kExitDone;
}

Result<int> execute(const SweepListCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(std::vector<SweepSummary> sweeps,
             connection.call([](api::Client& client) { return client.sweeps(); }));
  std::erase_if(sweeps, [&](const SweepSummary& each) {
    return !command.project.empty() && each.project != command.project;
  });
  if (command.output == Output::kNames) {
    std::string names;
    for (const SweepSummary& each : sweeps) names += each.name + "\n";
    MUSTER_CHECK(show(names));
    return kExitDone;
  }
  MUSTER_CHECK(show(command.output, sweep_table(sweeps, base::SystemClock().now()),
                    api::sweeps_to_json(sweeps)));
  return kExitDone;
}

Result<int> execute(const SweepGetCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  MUSTER_TRY(const sweep::Sweep sweep, get_sweep(connection, command.name));
  std::string page = sweep_page(sweep, base::SystemClock().now());
  if (command.chart && command.output == Output::kTable) {
    MUSTER_TRY(const std::string chart, chart_of(connection, sweep));
    page += chart;
  }
  MUSTER_CHECK(show(command.output, page, api::sweep_to_json(sweep)));
  return kExitDone;
}

Result<int> execute(const SweepBestCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  MUSTER_TRY(const sweep::Sweep sweep, get_sweep(connection, command.name));
  if (!sweep.summary.best_trial) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "no trial of sweep '" + sweep.summary.name + "' has reported '" +
                         sweep.summary.metric + "' yet",
                 .advice = "muster sweep get " + sweep.summary.name + " shows its trials"};
  }
  const Trial& best = sweep.trials.front();
  nlohmann::ordered_json document = {{"trial", best.number},
                                     {"job", sweep::trial_name(sweep.summary.name, best.number)},
                                     {"values", best.values},
                                     {"best", *best.best},
                                     {"command", rerun_command(sweep, best)}};
  MUSTER_CHECK(show(command.output, rerun_command(sweep, best) + "\n", base::json_text(document)));
  return kExitDone;
}

Result<int> execute(const SweepWaitCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  MUSTER_TRY(const sweep::Sweep sweep, get_sweep(connection, command.name));
  return jobs::wait_for_sweep(connection, sweep.summary, command.timeout);
}

namespace {

/// What a command did to a sweep. `action`: "stop", "pause", "resume".
std::string sweep_change_text(const std::string& action, const sweep::SweepSummary& sweep) {
  if (action == kSweepStop) return sweep_stop_text(sweep);
  return (action == kSweepPause ? "paused " : "resumed ") + sweep.name + "\n";
}

}  // namespace

Result<int> execute(const SweepChangeCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  std::string text;
  const int code = for_each_name(command.names, [&](const std::string& name) -> Result<void> {
    MUSTER_TRY(const sweep::Sweep changed, connection.call([&](api::Client& client) {
      return client.change_sweep(name, command.action);
    }));
    text += sweep_change_text(command.action, changed.summary);
    return {};
  });
  MUSTER_CHECK(show(text));
  return code;
}

Result<int> execute(const SweepDeleteCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  return delete_each(command.names, command.ignore_missing, [&](const std::string& name) {
    return jobs::remove_sweep(connection, name, false);
  });
}

}  // namespace muster::cli::sweeps
