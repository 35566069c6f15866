// The command delete: removes ended jobs, arrays and sweeps, by name or all that match conditions.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/array_wire.h"
#include "api/job_rows.h"
#include "api/sweep_wire.h"
#include "api/wire.h"
#include "base/text.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/common/row_view.h"
#include "cli/common/terminal.h"
#include "cli/common/typed_input.h"
#include "cli/connection/connection.h"
#include "cli/jobs/arrays.h"
#include "cli/jobs/jobs.h"
#include "job/project.h"
#include "record/input.h"
#include "workspace/path_text.h"

namespace muster::cli::jobs {

using base::Error;
using base::ErrorCode;

namespace {

std::vector<std::string> deletable_phases() {
  std::vector<std::string> words;
  for (const job::Phase phase : {job::Phase::kSucceeded, job::Phase::kFailed, job::Phase::kStopped})
    words.emplace_back(job::to_string(phase));
  return words;
}

/// The phases of --phase, which must be those of ended jobs.
std::vector<job::Phase> read_ended_phases(FlagReader& reader) {
  std::vector<job::Phase> phases;
  for (const std::string& text : reader.texts("--phase")) {
    for (const std::string& word : base::split(text, ',')) {
      const auto phase = phase_meant(word);
      if (phase && job::is_final(*phase)) {
        phases.push_back(*phase);
      } else {
        reader.fault("--phase", record::not_a_choice(word, deletable_phases()));
      }
    }
  }
  return phases;
}

bool selects_jobs(const FlagReader& reader) {
  return reader.has("--all-ended") || reader.has("--ended-before") || reader.has("--label") ||
         reader.has("--phase");
}

Call read_delete(Reading& in) {
  DeleteCommand command{.names = in.arguments.names,
                        .project = in.project_of_job(),
                        .ignore_missing = in.reader.has("--ignore-missing"),
                        .force = in.reader.has("--force"),
                        .dry_run = in.reader.has("--dry-run"),
                        .yes = in.reader.has("--yes"),
                        .output = in.output()};
  // No phase at all would mean every phase.
  in.refuse_empty("--phase");
  if (selects_jobs(in.reader)) {
    command.ended.emplace(DeleteCommand::Ended{
        .project = command.project.empty() ? in.caller.project : command.project,
        .before = in.reader.moment("--ended-before", in.caller.now),
        .labels = in.reader.texts("--label"),
        .phases = read_ended_phases(in.reader)});
  }
  constexpr const char* kSelections = "--all-ended, --ended-before, --label and --phase";
  if (command.ended && !command.names.empty()) {
    in.reader.fault("NAME", std::string("cannot be used with ") + kSelections);
  } else if (!command.ended && command.names.empty()) {
    in.reader.fault("NAME", "is missing; name the jobs, or give --ended-before 7d");
  }
  if (command.ended && command.force) {
    in.reader.fault("--force",
                    std::string("cannot be used with ") + kSelections + ", whose jobs have ended");
  }
  return command;
}

}  // namespace

Command delete_command() {
  return {
      .name = "delete",
      .alias = "rm",
      .help = "delete ended jobs, arrays and sweeps, with their logs and artifacts",
      .read = read_delete,
      .positionals = any_of(Offer::kJobs),
      .flags =
          Flags{{.name = "--ignore-missing", .help = "do not fail if a job does not exist"},
                {.name = "--force",
                 .help = "kill running jobs, arrays and sweeps before deleting them"},
                {.name = "--all-ended",
                 .help = "delete all ended jobs, arrays and sweeps of the project"},
                {.name = "--ended-before",
                 .value = "TIME",
                 .help = "delete what ended before this time: 7d (ago), or "
                         "2026-01-31T12:00:00Z"},
                {.name = "--label",
                 .letter = "-l",
                 .value = "NAME[=VALUE]",
                 .help = "delete what has ended and has this label; repeated: all these labels",
                 .repeats = true},
                {.name = "--phase",
                 .value = "PHASE",
                 .help = "delete what ended in this phase: Succeeded, Failed or Stopped; "
                         "repeated: in any of these phases",
                 .choices = deletable_phases(),
                 .offer = Offer::kChoices,
                 .repeats = true},
                {.name = "--dry-run", .help = "print what would be deleted, and delete nothing"},
                {.name = "--yes", .letter = "-y", .help = "do not ask for confirmation"}} +
          Flags{{.name = "--project",
                 .value = "PROJECT",
                 .help = "project of the jobs, if several projects have a job of this name; with "
                         "--all-ended and the like: the project to clear",
                 .offer = Offer::kProjects}} +
          output_flag(),
      .example = "muster delete --phase Failed --ended-before 7d"};
}

namespace {

/// Waits until the job has ended or was removed, also while the server restarts.
Result<void> wait_for_end(Connection& connection, const job::Job& job) {
  const JobWatch watch{.project = job.spec.project,
                       .names = {job.spec.name},
                       .on_job = [&](const std::string& /*name*/, const job::Job* now) {
                         return now != nullptr && now->id == job.id && !job::is_final(now->phase);
                       }};
  MUSTER_CHECK(watch_jobs(connection, watch));
  return {};
}

}  // namespace

Result<void> wait_for_array(Connection& connection, const job::Array& array) {
  JobWatch watch{.project = array.spec.project, .names = {array.spec.name}};
  watch.on_job = [](const std::string& /*name*/, const job::Job* job) { return job != nullptr; };
  watch.on_array = [&](const std::string& /*name*/, const job::Array& now) {
    return now.id == array.id && !now.ended;
  };
  MUSTER_CHECK(watch_jobs(connection, watch));
  return {};
}

namespace {

Result<void> remove_plain_job(Connection& connection, const std::string& name, bool force) {
  if (force) {
    const auto stopped =
        connection.call([&](api::Client& client) { return client.stop(name, true); });
    if (!stopped) return stopped.error();
    if (!job::is_final(stopped->phase)) MUSTER_CHECK(wait_for_end(connection, *stopped));
  }
  auto removed = connection.call([&](api::Client& client) { return client.remove(name); });
  if (removed || removed.error().code != ErrorCode::kConflict) return removed;
  // `muster stop` returns before the program has ended. The grace period is the longest wait here.
  const auto job = connection.call([&](api::Client& client) { return client.get(name); });
  if (!job || !job->stop_requested) return removed;
  MUSTER_CHECK(wait_for_end(connection, *job));
  return connection.call([&](api::Client& client) { return client.remove(name); });
}

}  // namespace

namespace {

Result<std::vector<job::Job>> unfinished_trials(Connection& connection,
                                                const sweep::SweepSummary& sweep) {
  const api::JobQuery query{
      .project = sweep.project,
      .phases = {job::Phase::kQueued, job::Phase::kStarting, job::Phase::kRunning},
      .origin = api::OriginFilter{.kind = job::JobOrigin::Kind::kSweep, .of = sweep.id}};
  return connection.call([&](api::Client& client) { return client.list_all(query); });
}

}  // namespace

Result<void> wait_for_trials(Connection& connection, const sweep::SweepSummary& sweep) {
  MUSTER_TRY(const std::vector<job::Job> trials, unfinished_trials(connection, sweep));
  for (const job::Job& trial : trials) MUSTER_CHECK(wait_for_end(connection, trial));
  return {};
}

Result<void> remove_array(Connection& connection, const std::string& name, bool force) {
  if (force) {
    MUSTER_TRY(const job::Array stopped,
               connection.call([&](api::Client& client) { return client.stop_array(name, true); }));
    if (!stopped.ended) MUSTER_CHECK(wait_for_array(connection, stopped));
  }
  auto removed = connection.call([&](api::Client& client) { return client.remove_array(name); });
  if (removed || removed.error().code != ErrorCode::kConflict) return removed;
  const auto array = connection.call([&](api::Client& client) { return client.array(name); });
  if (!array || !array->stop_requested) return removed;
  MUSTER_CHECK(wait_for_array(connection, *array));
  return connection.call([&](api::Client& client) { return client.remove_array(name); });
}

namespace {

/// Stops the sweep, and kills its trials.
Result<void> kill_sweep(Connection& connection, const std::string& name) {
  MUSTER_TRY(const sweep::Sweep sweep, connection.call([&](api::Client& client) {
    return client.change_sweep(name, "stop");
  }));
  MUSTER_TRY(const std::vector<job::Job> trials, unfinished_trials(connection, sweep.summary));
  for (const job::Job& trial : trials) {
    MUSTER_CHECK(connection.call([&](api::Client& client) { return client.stop(trial.id, true); }));
  }
  return {};
}

}  // namespace

Result<void> remove_sweep(Connection& connection, const std::string& name, bool force) {
  if (force) MUSTER_CHECK(kill_sweep(connection, name));
  MUSTER_TRY(const sweep::Sweep sweep,
             connection.call([&](api::Client& client) { return client.sweep(name); }));
  // After `muster stop`, its trials are still being stopped.
  if (sweep.summary.ended) MUSTER_CHECK(wait_for_trials(connection, sweep.summary));
  return connection.call([&](api::Client& client) { return client.remove_sweep(name); });
}

Result<void> remove_job(Connection& connection, const std::string& name, bool force) {
  auto removed = remove_plain_job(connection, name, force);
  if (removed || removed.error().code != ErrorCode::kNotFound) return removed;
  for (const auto& remove : {remove_array, remove_sweep}) {
    auto other = remove(connection, name, force);
    if (other || other.error().code != ErrorCode::kNotFound) return other;
  }
  return removed;
}

// --- what is deleted

namespace {

using api::JobRow;

/// A job, an array or a sweep to delete.
struct Deletion {
  JobRow row;
  std::string document = {};  ///< for --output json; else empty
};

Result<std::vector<JobRow>> all_rows(Connection& connection, api::JobQuery query) {
  std::vector<JobRow> rows;
  query.limit = api::kMostJobs;
  do {
    MUSTER_TRY(api::RowPage page,
               connection.call([&](api::Client& client) { return client.list_rows(query); }));
    std::move(page.rows.begin(), page.rows.end(), std::back_inserter(rows));
    query.cursor = std::move(page.next);
  } while (!query.cursor.empty());
  return rows;
}

/// The ended jobs, arrays and sweeps, in the order in which they ended. A member goes with its array,
/// and a trial with its sweep.
Result<std::vector<JobRow>> ended(Connection& connection, const DeleteCommand::Ended& filter) {
  api::JobQuery query{
      .project = filter.project.empty() ? std::string(job::kDefaultProject) : filter.project,
      .phases = filter.phases,
      .labels = filter.labels,
      .order = {.by = api::JobColumn::kEnded},
      .ended = {.after = {}, .before = filter.before},
      .top = true};
  if (query.phases.empty()) {
    query.phases = {job::Phase::kSucceeded, job::Phase::kFailed, job::Phase::kStopped};
  }
  MUSTER_TRY(std::vector<JobRow> rows, all_rows(connection, std::move(query)));
  std::erase_if(rows, [](const JobRow& row) { return !row.ended; });
  return rows;
}

/// The row of an array or a sweep.
Result<JobRow> row_with_id(Connection& connection, const std::string& id, const std::string& name,
                           const std::string& project) {
  MUSTER_TRY(const std::vector<JobRow> rows,
             all_rows(connection, {.project = project, .prefix = name, .top = true}));
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const JobRow& each) { return each.id == id; });
  if (row != rows.end()) return *row;
  return Error{.code = ErrorCode::kNotFound, .what = "'" + name + "' was deleted meanwhile"};
}

Result<JobRow> named_row(Connection& connection, const std::string& name) {
  const auto job = connection.call([&](api::Client& client) { return client.get(name); });
  if (job) return api::row_of(*job);
  MUSTER_TRY(const auto array, instead_of_job(connection, job.error(), [&](api::Client& client) {
               return client.array(name);
             }));
  if (array) return row_with_id(connection, array->id, array->spec.name, array->spec.project);
  MUSTER_TRY(const auto sweep, instead_of_job(connection, job.error(), [&](api::Client& client) {
               return client.sweep(name);
             }));
  if (!sweep) return job.error();
  return row_with_id(connection, sweep->summary.id, sweep->summary.name, sweep->summary.project);
}

/// The rows of all names that exist; `code`: of the first that does not.
std::vector<JobRow> named(Connection& connection, const DeleteCommand& command, int& code) {
  std::vector<JobRow> rows;
  code = for_each_name(command.names, [&](const std::string& name) -> Result<void> {
    auto row = named_row(connection, name);
    const bool missing = !row && row.error().code == ErrorCode::kNotFound;
    if (missing && command.ignore_missing) return {};
    if (!row) return std::move(row).error();
    rows.push_back(*std::move(row));
    return {};
  });
  return rows;
}

Result<std::string> document_of(Connection& connection, const JobRow& row) {
  const auto get = [&](const auto& call) { return connection.call(call); };
  if (row.object == JobRow::Object::kArray) {
    MUSTER_TRY(const job::Array array, get([&](api::Client& each) { return each.array(row.id); }));
    return api::array_to_json(array);
  }
  if (row.object == JobRow::Object::kSweep) {
    MUSTER_TRY(const sweep::Sweep sweep,
               get([&](api::Client& each) { return each.sweep(row.id); }));
    return api::sweep_to_json(sweep);
  }
  MUSTER_TRY(const job::Job job, get([&](api::Client& each) { return each.get(row.id); }));
  return api::job_to_json(job);
}

Result<std::vector<Deletion>> with_documents(Connection& connection, std::vector<JobRow> rows,
                                             Output output) {
  std::vector<Deletion> deletions;
  for (JobRow& row : rows) {
    std::string document;
    if (output != Output::kTable) {
      MUSTER_TRY(document, document_of(connection, row));
    }
    deletions.push_back({.row = std::move(row), .document = std::move(document)});
  }
  return deletions;
}

std::string documents_of(const std::vector<Deletion>& deletions) {
  Documents all;
  for (const Deletion& each : deletions) {
    const bool is_array = each.row.object == JobRow::Object::kArray;
    const bool is_sweep = each.row.object == JobRow::Object::kSweep;
    auto& list = is_array ? all.arrays : is_sweep ? all.sweeps : all.jobs;
    list.push_back(each.document);
  }
  return all.to_json();
}

std::string table_of_deletions(const std::vector<Deletion>& all) {
  std::vector<JobRow> rows;
  for (const Deletion& each : all) rows.push_back(each.row);
  return row_table(rows, usual_columns(rows), base::SystemClock().now());
}

/// "2 jobs, 1 array (100 members)".
std::string deletion_words(const std::vector<Deletion>& all) {
  std::map<JobRow::Object, size_t> counts;
  std::map<JobRow::Object, size_t> members;
  for (const Deletion& each : all) {
    ++counts[each.row.object];
    if (each.row.members) members[each.row.object] += static_cast<size_t>(each.row.members->all);
  }
  using workspace::count_text;
  std::vector<std::string> parts;
  const auto add = [&](JobRow::Object object, const char* one, const char* several,
                       const char* member) {
    const size_t count = counts[object];
    if (count == 0) return;
    parts.push_back(count_text(count, one, several));
    if (member == nullptr) return;
    parts.back() += " (" + count_text(members[object], member, std::string(member) + "s") + ")";
  };
  add(JobRow::Object::kJob, "job", "jobs", nullptr);
  add(JobRow::Object::kArray, "array", "arrays", "member");
  add(JobRow::Object::kSweep, "sweep", "sweeps", "trial");
  return base::joined(parts);
}

enum class Meant { kYes, kNo, kInterrupted };

/// Whether the user confirms the deletion. A script must pass --yes, because it cannot be asked.
Result<Meant> is_meant(const std::vector<Deletion>& all, const DeleteCommand& command) {
  if (command.yes || all.empty()) return Meant::kYes;
  if (::isatty(STDIN_FILENO) != 1) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "this command deletes " + deletion_words(all) +
                         " and needs a confirmation, but standard input is not a terminal",
                 .advice = "confirm with --yes; list them with --dry-run"};
  }
  const std::string table = table_of_deletions(all);
  if (command.output == Output::kTable) {
    MUSTER_CHECK(show(table));
  } else {
    std::cerr << (terminal_of(STDERR_FILENO).is_terminal ? safe_lines(table) : table) << std::flush;
  }
  Interrupts interrupts;
  const std::string question =
      "delete " + deletion_words(all) + " with all logs and artifacts? [y/N] ";
  MUSTER_TRY(const auto answer, ask(STDIN_FILENO, question, Echo::kOn, interrupts));
  if (!answer) return Meant::kInterrupted;
  const bool agrees = *answer == "y" || *answer == "Y" || *answer == "yes";
  return agrees ? Meant::kYes : Meant::kNo;
}

Result<void> remove_row(Connection& connection, const JobRow& row, bool force) {
  if (row.object == JobRow::Object::kArray) return remove_array(connection, row.id, force);
  if (row.object == JobRow::Object::kSweep) return remove_sweep(connection, row.id, force);
  return remove_plain_job(connection, row.id, force);
}

/// Deletes the objects, which are known by their ids, and prints them.
Result<int> delete_all(Connection& connection, const std::vector<Deletion>& all,
                       const DeleteCommand& command) {
  std::vector<std::string> ids;
  std::map<std::string, const Deletion*> by_id;
  for (const Deletion& each : all) {
    ids.push_back(each.row.id);
    by_id[each.row.id] = &each;
  }
  std::vector<Deletion> deleted;
  const int code = for_each_name(ids, [&](const std::string& id) -> Result<void> {
    const Deletion& each = *by_id[id];
    auto removed = remove_row(connection, each.row, command.force);
    // Another user or a retention rule may have removed it first.
    if (!removed && removed.error().code != ErrorCode::kNotFound) return removed;
    deleted.push_back(each);
    if (command.output != Output::kTable) return {};
    return show("deleted " + each.row.name + "\n");
  });
  if (command.output == Output::kTable) return code;
  MUSTER_CHECK(show(command.output, "", documents_of(deleted)));
  return code;
}

}  // namespace

Result<int> execute(const DeleteCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  // By name, without a table first: each is looked for while it is deleted.
  if (!command.ended && !command.dry_run && command.output == Output::kTable) {
    return delete_each(command.names, command.ignore_missing, [&](const std::string& name) {
      return remove_job(connection, name, command.force);
    });
  }
  int code = kExitDone;
  std::vector<JobRow> rows;
  if (command.ended) {
    MUSTER_TRY(rows, ended(connection, *command.ended));
  } else {
    rows = named(connection, command, code);
  }
  MUSTER_TRY(const std::vector<Deletion> all,
             with_documents(connection, std::move(rows), command.output));
  if (command.dry_run) {
    MUSTER_CHECK(show(command.output, table_of_deletions(all), documents_of(all)));
    return code;
  }
  if (command.ended) {
    MUSTER_TRY(const Meant meant, is_meant(all, command));
    if (meant != Meant::kYes) {
      std::cerr << "muster: nothing was deleted" << std::endl;
      return meant == Meant::kInterrupted ? kExitInterrupted : kExitFailed;
    }
    if (all.empty()) std::cerr << "muster: no job to delete" << std::endl;
  }
  MUSTER_TRY(const int deleted, delete_all(connection, all, command));
  return code == kExitDone ? deleted : code;
}

}  // namespace muster::cli::jobs
