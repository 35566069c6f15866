// The command delete: removes ended jobs and arrays, by name or all that match conditions.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/wire.h"
#include "base/text.h"
#include "cli/command/command.h"
#include "cli/common/job_view.h"
#include "cli/common/output.h"
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
      const auto phase = job::phase_of(word);
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
                        .project = in.whose_job(),
                        .ignore_missing = in.reader.has("--ignore-missing"),
                        .force = in.reader.has("--force"),
                        .dry_run = in.reader.has("--dry-run"),
                        .yes = in.reader.has("--yes"),
                        .output = in.output()};
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
      .help = "delete ended jobs with their logs and artifacts",
      .read = read_delete,
      .positionals = any_of(Offer::kJobs),
      .flags =
          Flags{{.name = "--ignore-missing", .help = "do not fail if a job does not exist"},
                {.name = "--force", .help = "kill running jobs before deleting them"},
                {.name = "--all-ended", .help = "delete all ended jobs of the project"},
                {.name = "--ended-before",
                 .value = "TIME",
                 .help = "delete jobs of the project that ended before this time: 7d (ago), "
                         "or 2026-01-31T12:00:00Z"},
                {.name = "--label",
                 .letter = "-l",
                 .value = "NAME[=VALUE]",
                 .help = "delete ended jobs of the project with this label; repeated: with all "
                         "these labels",
                 .repeats = true},
                {.name = "--phase",
                 .value = "PHASE",
                 .help = "delete jobs of the project that ended so: Succeeded, Failed or Stopped; "
                         "repeated: any of these",
                 .choices = deletable_phases(),
                 .offer = Offer::kChoices,
                 .repeats = true},
                {.name = "--dry-run", .help = "print the jobs, delete nothing"},
                {.name = "--yes", .letter = "-y", .help = "do not ask for confirmation"}} +
          whose_job_flag() + output_flag(),
      .example = "muster delete --phase Failed --ended-before 7d"};
}

namespace {

Result<void> wait_for_end(Connection& connection, const std::string& name) {
  // Only the end of the logs matters here, not their content.
  const job::LogQuery query{.follow = true, .task = {}, .since = {}, .tail = 0};
  const auto ended = connection.call([&](api::Client& client) {
    return client.logs(name, query, [](const job::LogRecord&) { return true; });
  });
  if (!ended) return ended.error();
  return {};
}

}  // namespace

namespace {

Result<void> remove_plain_job(Connection& connection, const std::string& name, bool force) {
  if (force) {
    const auto stopped =
        connection.call([&](api::Client& client) { return client.stop(name, true); });
    if (!stopped) return stopped.error();
    if (!job::is_final(stopped->phase)) MUSTER_CHECK(wait_for_end(connection, name));
  }
  auto removed = connection.call([&](api::Client& client) { return client.remove(name); });
  if (removed || removed.error().code != ErrorCode::kConflict) return removed;
  // `muster stop` returns before the program has ended. The grace period is the longest wait here.
  const auto job = connection.call([&](api::Client& client) { return client.get(name); });
  if (!job || !job->stop_requested) return removed;
  MUSTER_CHECK(wait_for_end(connection, name));
  return connection.call([&](api::Client& client) { return client.remove(name); });
}

}  // namespace

Result<void> remove_job(Connection& connection, const std::string& name, bool force) {
  auto removed = remove_plain_job(connection, name, force);
  if (removed || removed.error().code != ErrorCode::kNotFound) return removed;
  auto array = remove_array(connection, name, force);
  if (!array && array.error().code == ErrorCode::kNotFound) return removed;
  return array;
}

namespace {

Result<std::vector<job::Job>> named(Connection& connection, const DeleteCommand& command) {
  std::vector<job::Job> jobs;
  for (const std::string& name : command.names) {
    auto job = connection.call([&](api::Client& client) { return client.get(name); });
    const bool missing = !job && job.error().code == ErrorCode::kNotFound;
    if (missing && command.ignore_missing) continue;
    if (!job) return std::move(job).error();
    jobs.push_back(*std::move(job));
  }
  return jobs;
}

/// The ended jobs, in the order in which they ended.
Result<std::vector<job::Job>> ended(Connection& connection, const DeleteCommand::Ended& wanted) {
  api::JobQuery query{
      .project = wanted.project.empty() ? std::string(job::kDefaultProject) : wanted.project,
      .phases = wanted.phases,
      .labels = wanted.labels};
  if (query.phases.empty()) {
    query.phases = {job::Phase::kSucceeded, job::Phase::kFailed, job::Phase::kStopped};
  }
  MUSTER_TRY(std::vector<job::Job> jobs,
             connection.call([&](api::Client& client) { return client.list_all(query); }));
  std::erase_if(jobs, [&](const job::Job& job) {
    if (!job::is_final(job.phase) || !job.ended) return true;
    return wanted.before && *job.ended >= *wanted.before;
  });
  std::sort(jobs.begin(), jobs.end(),
            [](const job::Job& one, const job::Job& other) { return *one.ended < *other.ended; });
  return jobs;
}

/// Whether the user confirms the deletion. A script must pass --yes, because it cannot be asked.
Result<bool> is_meant(const std::vector<job::Job>& jobs, const DeleteCommand& command) {
  if (command.yes || jobs.empty()) return true;
  if (::isatty(STDIN_FILENO) != 1) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "this command deletes " +
                         workspace::count_text(jobs.size(), "job", "jobs") +
                         " and needs a confirmation, but standard input is not a terminal",
                 .advice = "confirm with --yes; list the jobs with --dry-run"};
  }
  const std::string table = job_table(jobs, base::SystemClock().now());
  if (command.output == Output::kTable) {
    MUSTER_CHECK(show(table));
  } else {
    std::cerr << (terminal_of(STDERR_FILENO).is_terminal ? safe_lines(table) : table) << std::flush;
  }
  Interrupts interrupts;
  const std::string question = "delete " + workspace::count_text(jobs.size(), "job", "jobs") +
                               " with all logs and artifacts? [y/N] ";
  MUSTER_TRY(const auto answer, ask(STDIN_FILENO, question, Echo::kOn, interrupts));
  return answer && (*answer == "y" || *answer == "Y" || *answer == "yes");
}

/// Deletes the jobs, which are known by their ids, and prints them.
Result<int> delete_jobs(Connection& connection, const std::vector<job::Job>& jobs,
                        const DeleteCommand& command) {
  std::vector<std::string> ids;
  std::map<std::string, const job::Job*> by_id;
  for (const job::Job& job : jobs) {
    ids.push_back(job.id);
    by_id[job.id] = &job;
  }
  std::vector<job::Job> deleted;
  const int code = for_each_name(ids, [&](const std::string& id) -> Result<void> {
    auto removed = remove_job(connection, id, command.force);
    // Another user or a retention rule may have removed the job first.
    if (!removed && removed.error().code != ErrorCode::kNotFound) return removed;
    deleted.push_back(*by_id[id]);
    if (command.output != Output::kTable) return {};
    return show("deleted " + by_id[id]->spec.name + "\n");
  });
  if (command.output == Output::kTable) return code;
  MUSTER_CHECK(show(command.output, "", api::jobs_to_json(deleted)));
  return code;
}

Result<int> delete_ended(Connection& connection, const DeleteCommand& command) {
  MUSTER_TRY(const std::vector<job::Job> jobs, ended(connection, *command.ended));
  MUSTER_TRY(const bool meant, is_meant(jobs, command));
  if (!meant) {
    std::cerr << "muster: nothing was deleted" << std::endl;
    return kExitFailed;
  }
  if (jobs.empty()) std::cerr << "muster: no job to delete" << std::endl;
  return delete_jobs(connection, jobs, command);
}

Result<int> only_say(Connection& connection, const DeleteCommand& command) {
  MUSTER_TRY(const std::vector<job::Job> jobs,
             command.ended ? ended(connection, *command.ended) : named(connection, command));
  MUSTER_CHECK(
      show(command.output, job_table(jobs, base::SystemClock().now()), api::jobs_to_json(jobs)));
  return kExitDone;
}

}  // namespace

Result<int> execute(const DeleteCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  if (command.dry_run) return only_say(connection, command);
  if (command.ended) return delete_ended(connection, command);
  if (command.output != Output::kTable) {
    MUSTER_TRY(const std::vector<job::Job> jobs, named(connection, command));
    return delete_jobs(connection, jobs, command);
  }
  return delete_each(command.names, command.ignore_missing, [&](const std::string& name) {
    return remove_job(connection, name, command.force);
  });
}

}  // namespace muster::cli::jobs
