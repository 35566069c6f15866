// get, stop, delete.
#include "cli/jobs/jobs.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/array_wire.h"
#include "api/wire.h"
#include "cli/command/command.h"
#include "cli/common/array_view.h"
#include "cli/common/job_view.h"
#include "cli/common/output.h"
#include "cli/common/typed_input.h"
#include "cli/connection/connection.h"
#include "cli/jobs/arrays.h"
#include "cli/metrics/metrics.h"
#include "job/project.h"
#include "job/spec_table.h"
#include "workspace/path_text.h"

namespace muster::cli::jobs {

namespace {

Call read_get(Reading& in) {
  return GetCommand{.name = in.name("job"),
                    .project = in.whose_job(),
                    .spec = in.reader.has("--spec"),
                    .output = in.output()};
}

Call read_stop(Reading& in) {
  return StopCommand{.names = in.names("job"),
                     .project = in.whose_job(),
                     .now = in.reader.has("--now"),
                     .output = in.output()};
}

Call read_delete(Reading& in) {
  DeleteCommand command{.names = in.arguments.names,
                        .project = in.whose_job(),
                        .ignore_missing = in.reader.has("--ignore-missing"),
                        .force = in.reader.has("--force"),
                        .dry_run = in.reader.has("--dry-run"),
                        .yes = in.reader.has("--yes")};
  if (in.reader.has("--all-ended") || in.reader.has("--ended-before")) {
    command.ended.emplace(DeleteCommand::Ended{
        .project = command.project.empty() ? in.caller.project : command.project,
        .before = in.reader.moment("--ended-before", in.caller.now)});
  }
  if (command.ended && !command.names.empty()) {
    in.reader.fault("NAME", "cannot be used with --all-ended and --ended-before");
  } else if (!command.ended && command.names.empty()) {
    in.reader.fault("NAME", "is missing; name the jobs, or give --ended-before 7d");
  }
  if (command.ended && command.force) {
    in.reader.fault("--force",
                    "cannot be used with --all-ended and --ended-before, whose jobs have ended");
  }
  return command;
}

}  // namespace

Command get_command() {
  return {
      .name = "get",
      .alias = "describe",
      .help = "show a job: its tasks, their exit codes, its events",
      .read = read_get,
      .positionals = one_of(Offer::kJobs),
      .flags = Flags{{.name = "--spec",
                      .help = "print the submitted job as a job file for 'muster submit -f -'"}} +
               whose_job_flag() + output_flag(),
      .example = "muster get dist",
      .see_also = "muster logs, muster events, muster metrics"};
}

Command stop_command() {
  return {.name = "stop",
          .more_aliases = {"cancel", "kill"},
          .help = "stop jobs: SIGTERM, then SIGKILL after the grace period",
          .read = read_stop,
          .positionals = some_of(Offer::kJobs),
          .flags = Flags{{.name = "--now", .help = "send SIGKILL at once"}} + whose_job_flag() +
                   output_flag(),
          .example = "muster stop dist"};
}

Command delete_command() {
  return {
      .name = "delete",
      .alias = "rm",
      .help = "delete ended jobs with their logs and artifacts",
      .read = read_delete,
      .positionals = any_of(Offer::kJobs),
      .flags = Flags{{.name = "--ignore-missing", .help = "do not fail if a job does not exist"},
                     {.name = "--force", .help = "kill running jobs before deleting them"},
                     {.name = "--all-ended", .help = "delete all ended jobs of the project"},
                     {.name = "--ended-before",
                      .value = "TIME",
                      .help = "delete jobs of the project that ended before this time: 7d (ago), "
                              "or 2026-01-31T12:00:00Z"},
                     {.name = "--dry-run", .help = "print the jobs, delete nothing"},
                     {.name = "--yes", .letter = "-y", .help = "do not ask for confirmation"}} +
               whose_job_flag(),
      .example = "muster delete --ended-before 7d"};
}

namespace {

std::string stop_text(const job::Job& job) {
  if (!job::is_final(job.phase)) return "stopping " + job.spec.name + "\n";
  return job.spec.name + " has ended: " + std::string(job::to_string(job.phase)) + "\n";
}

/// The resources that the tasks of a running job use; empty if unknown.
std::string use_section(Connection& connection, const job::Job& job) {
  if (job.phase != job::Phase::kRunning) return "";
  const auto newest =
      connection.call([&](api::Client& client) { return client.metrics(job.id, {.last = true}); });
  const std::string table =
      newest ? metrics::use_table(metrics::of_living_tasks(job, *newest), "  ") : "";
  return table.empty() ? "" : "\nUSE\n" + table;
}

}  // namespace

namespace {

Result<int> show_array(const job::Array& array, const GetCommand& command) {
  if (command.spec) {
    const std::string spec = record::to_json(array.spec, record::Form::kHuman);
    MUSTER_CHECK(show(command.output, json_to_yaml(spec), spec));
  } else {
    MUSTER_CHECK(show(command.output, array_page(array, base::SystemClock().now()),
                      api::array_to_json(array)));
  }
  return kExitDone;
}

}  // namespace

Result<int> execute(const GetCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  auto found = connection.call([&](api::Client& client) { return client.get(command.name); });
  if (!found) {
    MUSTER_TRY(const std::optional<job::Array> array,
               as_array(connection, found.error(),
                        [&](api::Client& client) { return client.array(command.name); }));
    if (array) return show_array(*array, command);
  }
  MUSTER_TRY(const job::Job job, std::move(found));
  if (command.spec) {
    const std::string spec = record::to_json(job.spec, record::Form::kHuman);
    MUSTER_CHECK(show(command.output, json_to_yaml(spec), spec));
    return kExitDone;
  }
  const std::string use =
      command.output == Output::kTable ? use_section(connection, job) : std::string();
  const std::string page = job_page(job, base::SystemClock().now(), connection.server().engine);
  MUSTER_CHECK(show(command.output, page + use, api::job_to_json(job)));
  return kExitDone;
}

Result<int> execute(const StopCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  std::vector<job::Job> stopped;
  std::string text;
  const int code = for_each_name(command.names, [&](const std::string& name) -> Result<void> {
    MUSTER_TRY(const job::Job job, connection.call([&](api::Client& client) {
      return client.stop(name, command.now);
    }));
    text += stop_text(job);
    stopped.push_back(job);
    return {};
  });
  MUSTER_CHECK(show(command.output, text, api::jobs_to_json(stopped)));
  return code;
}

namespace {

using base::Error;
using base::ErrorCode;

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

Result<void> remove_job(Connection& connection, const std::string& name, bool force) {
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
  const api::JobQuery query{.project = wanted.project.empty() ? std::string(job::kDefaultProject)
                                                              : wanted.project};
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
  MUSTER_CHECK(show(job_table(jobs, base::SystemClock().now())));
  Interrupts interrupts;
  const std::string question = "delete " + workspace::count_text(jobs.size(), "job", "jobs") +
                               " with all logs and artifacts? [y/N] ";
  MUSTER_TRY(const auto answer, ask(STDIN_FILENO, question, Echo::kOn, interrupts));
  return answer && (*answer == "y" || *answer == "Y" || *answer == "yes");
}

Result<int> delete_ended(Connection& connection, const DeleteCommand& command) {
  MUSTER_TRY(const std::vector<job::Job> jobs, ended(connection, *command.ended));
  MUSTER_TRY(const bool meant, is_meant(jobs, command));
  if (!meant) {
    std::cerr << "muster: nothing was deleted" << std::endl;
    return kExitFailed;
  }
  std::vector<std::string> ids;
  std::map<std::string, std::string> names;
  for (const job::Job& job : jobs) {
    ids.push_back(job.id);
    names[job.id] = job.spec.name;
  }
  const int code = for_each_name(ids, [&](const std::string& id) -> Result<void> {
    auto removed = connection.call([&](api::Client& client) { return client.remove(id); });
    // Another user or a retention rule may have removed the job first.
    if (!removed && removed.error().code != ErrorCode::kNotFound) return removed;
    return show("deleted " + names[id] + "\n");
  });
  if (jobs.empty()) std::cerr << "muster: no job to delete" << std::endl;
  return code;
}

Result<int> only_say(Connection& connection, const DeleteCommand& command) {
  MUSTER_TRY(const std::vector<job::Job> jobs,
             command.ended ? ended(connection, *command.ended) : named(connection, command));
  MUSTER_CHECK(show(job_table(jobs, base::SystemClock().now())));
  return kExitDone;
}

}  // namespace

Result<int> execute(const DeleteCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  if (command.dry_run) return only_say(connection, command);
  if (command.ended) return delete_ended(connection, command);
  return delete_each(command.names, command.ignore_missing, [&](const std::string& name) {
    return remove_job(connection, name, command.force);
  });
}

}  // namespace muster::cli::jobs
