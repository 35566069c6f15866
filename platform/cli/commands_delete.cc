// delete: jobs that are named, and all that have ended.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/job_view.h"
#include "cli/report.h"
#include "cli/typed_input.h"
#include "job/project.h"
#include "workspace/path_text.h"

namespace muster::cli {

namespace {

using base::Error;
using base::ErrorCode;

Result<void> wait_for_end(Connection& connection, const std::string& name) {
  // Of the logs nothing but their end is wanted.
  const job::LogQuery query{.follow = true, .task = {}, .since = {}, .tail = 0};
  const auto ended = connection.call([&](api::Client& client) {
    return client.logs(name, query, [](const job::LogRecord&) { return true; });
  });
  if (!ended) return ended.error();
  return {};
}

Result<void> remove(Connection& connection, const std::string& name, bool force) {
  if (force) {
    const auto stopped =
        connection.call([&](api::Client& client) { return client.stop(name, true); });
    if (!stopped) return stopped.error();
    if (!job::is_final(stopped->phase)) MUSTER_CHECK(wait_for_end(connection, name));
  }
  auto removed = connection.call([&](api::Client& client) { return client.remove(name); });
  if (removed || removed.error().code != ErrorCode::kConflict) return removed;
  // `muster stop` returns before the program has ended; its grace is the longest wait here.
  const auto job = connection.call([&](api::Client& client) { return client.get(name); });
  if (!job || !job->stop_requested) return removed;
  MUSTER_CHECK(wait_for_end(connection, name));
  return connection.call([&](api::Client& client) { return client.remove(name); });
}

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

/// Those that ended first first.
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

/// Whether they are to go. A script has to say so beforehand: nobody is there to be asked.
Result<bool> is_meant(const std::vector<job::Job>& jobs, const DeleteCommand& command) {
  if (command.yes || jobs.empty()) return true;
  if (::isatty(STDIN_FILENO) != 1) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "this would delete " + workspace::count_text(jobs.size(), "job", "jobs") +
                         ", and nobody can be asked",
                 .advice = "say --yes; --dry-run shows which they are"};
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
    // Somebody else, or a rule of the server, may have been faster.
    if (!removed && removed.error().code != ErrorCode::kNotFound) return removed;
    return show("deleted " + names[id] + "\n");
  });
  if (jobs.empty()) std::cerr << "muster: no job has ended there" << std::endl;
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
    return remove(connection, name, command.force);
  });
}

}  // namespace muster::cli
