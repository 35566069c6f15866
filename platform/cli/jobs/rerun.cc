// rerun and diff: repeat a job, and compare two.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/array_wire.h"
#include "api/wire.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command/command.h"
#include "cli/common/array_view.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/connection/connection.h"
#include "cli/jobs/arrays.h"
#include "cli/jobs/jobs.h"
#include "cli/jobs/submit_file.h"
#include "cli/logs/logs.h"
#include "cli/spec/spec_file.h"
#include "cli/spec/spec_flags.h"
#include "config/yaml.h"
#include "job/spec_table.h"
#include "job/validate.h"
#include "record/difference.h"

namespace muster::cli::jobs {

using base::Error;
using base::ErrorCode;

namespace {

constexpr const char* kSameSpec =
    "cannot be used with flags that change the job: all members of an array have the same spec; "
    "only --set array.max_running=N and --set array.max_failures=N change something";

/// --set with --failed.
void read_changes_of_members(Reading& in, RerunCommand& command) {
  for (const std::string& setting : command.settings) {
    const size_t equals = std::min(setting.find('='), setting.size());
    const std::string key = setting.substr(0, equals);
    const auto number = base::number_of<int>(
        std::string_view(setting).substr(std::min(equals + 1, setting.size())));
    if (key != "array.max_running" && key != "array.max_failures") {
      in.reader.fault("--set " + key,
                      "the members of an array may not change this: all have the same spec");
    } else if (!number || *number < 0) {
      in.reader.fault("--set " + key, "needs a number of at least 0");
    } else {
      (key == "array.max_running" ? command.max_running : command.max_failures) = number;
    }
  }
}

/// Whether the flags leave every spec as it is.
bool changes_nothing(const spec::FlagOverrides& overrides) {
  FlagReader reader(overrides.arguments);
  job::JobSpec spec;
  const job::JobSpec before = spec;
  const bool sets_nothing = spec::override_spec(overrides, reader, spec).empty();
  spec.project = before.project;  // --project selects the array
  return sets_nothing && spec == before;
}

Call read_rerun(Reading& in) {
  RerunCommand command{.name = in.name("job"),
                       .project = in.project_of_job(),
                       .new_name = in.reader.text("--name"),
                       .flags = {.arguments = in.arguments, .caller = in.caller},
                       .settings = in.reader.texts("--set"),
                       .key = in.submission_key(),
                       .follow = in.reader.has("--follow"),
                       .dry_run = in.reader.has("--dry-run"),
                       .look = logs::read_look(in),
                       .output = in.output()};
  const auto overrides = spec::read_overrides(in.arguments, in.caller, in.reader);
  command.workspace = spec::read_workspace_flags(in.reader);
  command.failed = in.reader.has("--failed");
  if (command.failed) {
    read_changes_of_members(in, command);
    const bool changes = overrides && (command.workspace || !changes_nothing(*overrides));
    if (changes || !command.new_name.empty()) {
      in.reader.fault("--failed", kSameSpec);
    }
    if (command.dry_run) {
      in.reader.fault("--dry-run", "cannot be used with --failed; leave one of them out");
    }
    if (command.key.is_given) {
      in.reader.fault("--idempotency-key",
                      "cannot be used with --failed, which submits no new job");
    }
  }
  if (command.follow && command.dry_run) {
    in.reader.fault("--follow", "cannot be used with --dry-run, which starts nothing");
  }
  if (command.follow && in.reader.has("--output")) {
    in.reader.fault("--output", "cannot be used with --follow, which prints the logs");
  }
  return command;
}

Call read_diff(Reading& in) {
  return DiffCommand{
      .sides = in.names("job"), .project = in.project_of_job(), .output = in.output()};
}

}  // namespace

Command rerun_command() {
  Flags flags = spec::override_flags();
  for (Flag& flag : flags) {
    if (flag.name == "--project") flag.help = "project of the job, and of the new job";
  }
  const Flags own = {
      {.name = "--name",
       .value = "NAME",
       .help = "name of the new job (default: NAME-2, and so on)"},
      {.name = "--set",
       .value = "KEY=VALUE",
       .help = "set any key of a job file, as in workers=4; overrides every other flag",
       .repeats = true},
      {.name = "--failed",
       .help = "of an array: run the members again that failed or were stopped"},
      {.name = "--follow", .help = "print the logs until the job ends"},
      {.name = "--dry-run",
       .help = "show where the job would start, and what differs from the old job; submit nothing"},
      {.name = "--idempotency-key",
       .value = "KEY",
       .help = "submit no second job if this key was used before"}};
  return {.name = "rerun",
          .help = "submit a job again: the same spec and files, except for what flags change",
          .read = read_rerun,
          .positionals = one_of(Offer::kJobs),
          .takes_program = true,
          .flags = spec::in_groups(own + flags + logs::look_flags() + output_flag()),
          .example = "muster rerun train --gpus 2 --set environment.LR=0.01",
          .see_also = "muster diff, which shows what differs"};
}

Command diff_command() {
  return {.name = "diff",
          .help = "show in which fields two jobs differ, or a job and the job that it repeats",
          .read = read_diff,
          .positionals = {.name = "NAME|FILE", .least = 1, .most = 2, .offer = Offer::kJobs},
          .flags = job_project_flag() + output_flag(),
          .example = "muster diff train train-2",
          .see_also = "muster rerun, muster get --spec"};
}

// --- rerun

namespace {

/// "train-{n}" for train and its reruns train-2, train-3 ...
std::string template_of_reruns(const job::Job& job) {
  std::string stem = job.spec.name;
  const size_t dash = stem.rfind('-');
  const bool is_numbered = dash != std::string::npos && dash > 0 &&
                           base::number_of<uint64_t>(std::string_view(stem).substr(dash + 1));
  const bool is_rerun = job.origin && job.origin->kind == job::JobOrigin::Kind::kRerun;
  if (is_rerun && is_numbered) stem.resize(dash);
  return stem + "-" + std::string(job::kNumberPlace);
}

/// Applies flags and settings to the spec of the old job `repeated`. Variables that came from the
/// shell of that job stay marked as such, except those that are set now.
Result<std::vector<spec::ChangedValue>> change_spec(const RerunCommand& command,
                                                    const std::string& repeated,
                                                    job::JobSpec& spec) {
  const job::JobSpec before = spec;
  std::set<std::string> inherited = job::inherited_variables(before);
  bool inherits_folder = job::inherits_folder(before);
  if (before.image.empty()) {
    // Only jobs with an image list what they inherit. In case the new job has one:
    const job::JobSpec shell = spec::default_spec(command.flags.caller);
    for (const auto& [name, value] : before.environment) {
      const auto here = shell.environment.find(name);
      if (here != shell.environment.end() && here->second == value) inherited.insert(name);
    }
    inherits_folder = true;
  }
  FlagReader reader(command.flags.arguments);
  std::set<std::string> set = spec::override_spec(command.flags, reader, spec);
  const job::JobSpec flagged = spec;
  spec::SettingsRead read = spec::apply_settings(command.settings, spec);
  const std::set<std::string> read_keys = read.keys;
  set.merge(read.keys);
  std::vector<spec::ChangedValue> changes = spec::changed_values(before, flagged, spec);
  spec::resolve_paths(command.flags.caller.folder, spec);
  for (const std::string& field : set) {
    constexpr std::string_view kVariable = "environment.";
    if (field.starts_with(kVariable)) inherited.erase(field.substr(kVariable.size()));
  }
  job::note_inherited(inherited, inherits_folder && !set.contains("folder"), spec);
  std::vector<base::Fault> faults;
  for (const base::Fault& fault : read.faults) faults.push_back(spec::fault_of_setting(fault));
  for (base::Fault& fault : job::validate(spec)) {
    if (config::follows_from_unread(fault.field, read.faults)) continue;
    const bool is_changed = std::any_of(changes.begin(), changes.end(), [&](const auto& change) {
      return change.value.path == fault.field;
    });
    if (read_keys.contains(fault.field)) {
      fault = spec::fault_of_setting(fault);
    } else if (is_changed) {
      fault.field = spec::flag_of_spec_field(fault.field);
    }
    faults.push_back(std::move(fault));
  }
  if (faults.empty()) return changes;
  return Error{.code = ErrorCode::kInvalid,
               .what = "the rerun of '" + repeated + "' would have " +
                       base::count_text(static_cast<int64_t>(faults.size()), "fault"),
               .faults = std::move(faults)};
}

}  // namespace

namespace {

Result<int> rerun_failed_members(Connection& connection, const RerunCommand& command) {
  const api::RerunRequest changes{.max_running = command.max_running,
                                  .max_failures = command.max_failures};
  MUSTER_TRY(const job::Array array,
             connection.call_once(
                 [&](api::Client& client) { return client.rerun_failed(command.name, changes); },
                 "the members may run again already; before you try again, see: muster get " +
                     command.name));
  const std::string text = array.spec.name + ": " + array_counts(array) + "\n";
  if (!command.follow) {
    MUSTER_CHECK(show(command.output, text, api::array_to_json(array)));
    return kExitDone;
  }
  Interrupts interrupts;
  return logs::follow_array(connection, interrupts,
                            {.name = array.id, .query = {.follow = true}, .look = command.look});
}

}  // namespace

namespace {

/// What runs again, before the command line changes it.
struct Rerun {
  Submission submission;
  std::string repeated;  ///< the name of the old job or array
};

Result<Rerun> rerun_of(Connection& connection, const RerunCommand& command) {
  const auto job = connection.call([&](api::Client& client) { return client.get(command.name); });
  if (job) {
    Submission rerun{.spec = job->spec, .options = {.rerun_of = job->id}};
    set_name(command.new_name.empty() ? template_of_reruns(*job) : command.new_name, rerun);
    return Rerun{.submission = std::move(rerun), .repeated = job->spec.name};
  }
  MUSTER_TRY(const std::optional<job::Array> array,
             instead_of_job(connection, job.error(), [&](api::Client& client) {
               return client.array_with_lines(command.name);
             }));
  if (!array) return job.error();
  Submission rerun{.spec = array->spec};
  // "train-2" may be a member of the array.
  const std::string pattern = array->spec.name + "-rerun-" + std::string(job::kNumberPlace);
  set_name(command.new_name.empty() ? pattern : command.new_name, rerun);
  return Rerun{.submission = std::move(rerun), .repeated = array->spec.name};
}

}  // namespace

Result<int> execute(const RerunCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  if (command.failed) return rerun_failed_members(connection, command);
  MUSTER_TRY(Rerun repeats, rerun_of(connection, command));
  Submission& rerun = repeats.submission;
  rerun.workspace = command.workspace;
  MUSTER_TRY(rerun.changes, change_spec(command, repeats.repeated, rerun.spec));
  std::vector<Submission> jobs;
  jobs.push_back(std::move(rerun));
  return carry_out(std::move(jobs),
                   {.key = command.key,
                    .follow = command.follow,
                    .dry_run = command.dry_run,
                    .look = command.look,
                    .output = command.output,
                    .origin = repeats.repeated},
                   hooks);
}

// --- diff

namespace {

struct DiffSide {
  std::string name;
  job::JobSpec spec;
  std::optional<job::JobOrigin> origin;
};

/// Names of jobs contain neither '.' nor '/'.
bool is_file(const std::string& word) {
  return word == "-" || word.find_first_of("./") != std::string::npos;
}

/// A job or an array.
Result<DiffSide> side_of_job(Connection& connection, const std::string& name) {
  auto job = connection.call([&](api::Client& client) { return client.get(name); });
  if (job) {
    return DiffSide{
        .name = job->spec.name, .spec = std::move(job->spec), .origin = std::move(job->origin)};
  }
  MUSTER_TRY(std::optional<job::Array> array,
             instead_of_job(connection, job.error(),
                            [&](api::Client& client) { return client.array_with_lines(name); }));
  if (!array) return std::move(job).error();
  return DiffSide{.name = array->spec.name, .spec = std::move(array->spec), .origin = {}};
}

/// A file with several jobs is compared by the job that has the name of the other side.
Result<DiffSide> side_of_file(const std::string& file, const std::string& other,
                              const Hooks& hooks) {
  MUSTER_TRY(std::vector<Submission> jobs, read_job_file({.file = file}, hooks));
  Submission* chosen = &jobs.front();
  for (Submission& job : jobs) {
    if (job.spec.name == other) chosen = &job;
  }
  if (jobs.size() > 1 && chosen->spec.name != other) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "'" + file + "' has " + std::to_string(jobs.size()) +
                         " jobs, none of which is called '" + other + "'",
                 .advice = "compare a file with one job"};
  }
  if (chosen->workspace) {
    std::cerr << "muster: note: the files of the workspace '" << chosen->workspace->source.where
              << "' are not compared\n";
  }
  return DiffSide{.name = file, .spec = std::move(chosen->spec), .origin = std::nullopt};
}

Error repeats_no_job(const std::string& name) {
  return {.code = ErrorCode::kInvalid,
          .what = "job '" + name + "' is not a rerun of another job",
          .advice = "name the other job: muster diff " + name + " OTHER"};
}

/// Both sides. The file is read last, because a job of it may be chosen by the other side's name.
Result<std::pair<DiffSide, DiffSide>> sides_of(const DiffCommand& command, const Hooks& hooks) {
  const std::string& first = command.sides.front();
  if (command.sides.size() == 1) {
    MUSTER_TRY(Connection connection, connect(hooks, command.project));
    MUSTER_TRY(DiffSide rerun, side_of_job(connection, first));
    const bool is_rerun = rerun.origin && rerun.origin->kind == job::JobOrigin::Kind::kRerun;
    if (!is_rerun) return repeats_no_job(first);
    MUSTER_TRY(DiffSide repeated, side_of_job(connection, rerun.origin->id));
    return std::pair(std::move(repeated), std::move(rerun));
  }
  const std::string& second = command.sides.back();
  if (is_file(first) && is_file(second)) {
    MUSTER_TRY(DiffSide left, side_of_file(first, "", hooks));
    MUSTER_TRY(DiffSide right, side_of_file(second, left.spec.name, hooks));
    return std::pair(std::move(left), std::move(right));
  }
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  if (is_file(first)) {
    MUSTER_TRY(DiffSide right, side_of_job(connection, second));
    MUSTER_TRY(DiffSide left, side_of_file(first, right.spec.name, hooks));
    return std::pair(std::move(left), std::move(right));
  }
  MUSTER_TRY(DiffSide left, side_of_job(connection, first));
  if (is_file(second)) {
    MUSTER_TRY(DiffSide right, side_of_file(second, left.spec.name, hooks));
    return std::pair(std::move(left), std::move(right));
  }
  MUSTER_TRY(DiffSide right, side_of_job(connection, second));
  return std::pair(std::move(left), std::move(right));
}

/// "- workers: 2" and "+ workers: 4" for each field, as diff(1) marks lines.
std::string difference_lines(const DiffSide& left, const DiffSide& right,
                             const std::vector<record::Difference>& differences, bool colour) {
  constexpr const char* kRed = "\x1b[31m";
  constexpr const char* kGreen = "\x1b[32m";
  std::string text;
  const auto line = [&](const char* with, const std::string& content) {
    text += colour ? with + safe_lines(content) + kNoColour : content;
    text += '\n';
  };
  line(kRed, "--- " + left.name);
  line(kGreen, "+++ " + right.name);
  for (const record::Difference& difference : differences) {
    if (difference.left) line(kRed, "- " + difference.path + ": " + value_words(difference.left));
    if (difference.right) {
      line(kGreen, "+ " + difference.path + ": " + value_words(difference.right));
    }
  }
  return text;
}

std::string differences_json(const DiffSide& left, const DiffSide& right,
                             const std::vector<record::Difference>& differences) {
  const auto value = [](const std::optional<std::string>& json) {
    return json ? base::parse_ordered_json(*json) : nlohmann::ordered_json();
  };
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const record::Difference& difference : differences) {
    list.push_back({{"field", difference.path},
                    {"left", value(difference.left)},
                    {"right", value(difference.right)}});
  }
  const nlohmann::ordered_json json{
      {"left", left.name}, {"right", right.name}, {"differences", std::move(list)}};
  return base::json_text(json);
}

}  // namespace

Result<int> execute(const DiffCommand& command, const Hooks& hooks) {
  MUSTER_TRY(const auto sides, sides_of(command, hooks));
  const auto& [left, right] = sides;
  std::vector<record::Difference> differences = record::differences(left.spec, right.spec);
  // Two jobs never have the same name; the names are in the title.
  std::erase_if(differences,
                [](const record::Difference& difference) { return difference.path == "name"; });
  if (command.output != Output::kTable) {
    MUSTER_CHECK(show(command.output, "", differences_json(left, right, differences)));
  } else if (!differences.empty()) {
    const Terminal terminal = terminal_of(STDOUT_FILENO);
    const std::string text = difference_lines(left, right, differences, terminal.colour);
    // The colours would not pass show().
    if (terminal.colour) {
      MUSTER_CHECK(base::write_all(STDOUT_FILENO, text));
    } else {
      MUSTER_CHECK(show(text));
    }
  }
  return differences.empty() ? kExitDone : kExitFailed;
}

}  // namespace muster::cli::jobs
