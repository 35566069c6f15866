// delete, suspend, resume: what changes jobs that are named, or all of a project.
#include <algorithm>
#include <iostream>
#include <set>
#include <utility>

#include "cli/common/report.h"
#include "cli/connection/commands.h"
#include "cli/connection/job_watch.h"
#include "dialects/runai/others.h"
#include "dialects/runai/parts.h"
#include "dialects/runai/sentences.h"

namespace muster::dialects::runai {

namespace {

using base::ErrorCode;
using Names = std::vector<std::string>;

/// A fault where the command line names no job and not all of them, or both.
void check_names(Asked& asked) {
  if (!asked.reader.ok()) return;
  const bool all = asked.reader.has("--all");
  const bool named = !asked.arguments.names.empty();
  if (!all && !named) asked.reader.fault("", "the name of a job is missing; --all means all");
  if (all && named) asked.reader.fault("--all", "means all jobs, so that none can be named");
}

/// Those that are named, each once, or those of the project that `is_meant` takes.
Result<Names> names_meant(Asked& asked, cli::Connection& connection,
                          bool (*is_meant)(const job::Job&)) {
  Names names;
  if (asked.reader.has("--all")) {
    MUSTER_TRY(const std::vector<job::Job> jobs, list_jobs(connection, project_of(asked)));
    for (const job::Job& job : jobs) {
      if (is_meant(job)) names.push_back(job.spec.name);
    }
    return names;
  }
  for (const std::string& name : asked.arguments.names) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

/// The worst news first: what a script is told is the first failure's code.
class Failures {
 public:
  void add(const base::Error& error) {
    std::cerr << cli::error_text(error, "runai") << std::flush;
    if (code_ == cli::kExitDone) code_ = cli::exit_code_of(error);
  }
  int code() const { return code_; }

 private:
  int code_ = cli::kExitDone;
};

/// Ends jobs and removes them: all are told to end before the first is waited for, so that many
/// take no longer than the slowest.
class Deletion {
 public:
  Deletion(cli::Connection& connection, std::string project)
      : connection_(connection), project_(std::move(project)) {}

  Result<int> run(const Names& names) {
    for (const std::string& name : names) stop(name);
    if (!ending_.empty()) MUSTER_CHECK(await_ends());
    for (const std::string& name : names) {
      if (stopped_.contains(name)) MUSTER_CHECK(remove(name));
    }
    return failures_.code();
  }

 private:
  void stop(const std::string& name) {
    const auto job =
        connection_.call([&](api::Client& client) { return client.stop(name, false); });
    if (!job) {
      const bool is_missing = job.error().code == ErrorCode::kNotFound;
      return failures_.add(is_missing ? no_such_job_to_delete(name, project_) : job.error());
    }
    stopped_.insert(name);
    if (!job::is_final(job->phase)) ending_.insert(name);
  }

  /// One that is gone was removed by somebody else who deletes it, too.
  Result<void> await_ends() {
    const cli::JobWatch watch{.project = project_,
                              .names = ending_,
                              .on_job = [this](const std::string& name, const job::Job* job) {
                                if (job == nullptr || job::is_final(job->phase))
                                  ending_.erase(name);
                                return !ending_.empty();
                              }};
    const auto watched = cli::watch_jobs(connection_, watch);
    if (!watched) return watched.error();
    return {};
  }

  Result<void> remove(const std::string& name) {
    const auto removed = connection_.call([&](api::Client& client) { return client.remove(name); });
    if (!removed && removed.error().code != ErrorCode::kNotFound) {
      failures_.add(removed.error());
      return {};
    }
    return cli::show("Job " + name + " deleted successfully.\n");
  }

  cli::Connection& connection_;
  std::string project_;
  std::set<std::string> stopped_;
  std::set<std::string> ending_;  ///< of them, those that have not ended yet
  Failures failures_;
};

using Act = Result<job::Job> (api::Client::*)(const std::string&);

Result<int> hold(Asked& asked, bool (*is_meant)(const job::Job&), Act act,
                 const std::string& word) {
  check_names(asked);
  if (!asked.reader.ok()) return usage_error_of(asked);
  MUSTER_TRY(cli::Connection connection, connect(asked));
  MUSTER_TRY(const Names names, names_meant(asked, connection, is_meant));
  Failures failures;
  for (const std::string& name : names) {
    const auto job = connection.call([&](api::Client& client) { return (client.*act)(name); });
    if (job) {
      MUSTER_CHECK(cli::show("Job " + name + " " + word + " successfully.\n"));
    } else {
      const bool is_missing = job.error().code == ErrorCode::kNotFound;
      failures.add(is_missing ? job_not_found(name) : job.error());
    }
  }
  return failures.code();
}

}  // namespace

Result<int> delete_command(Asked& asked) {
  check_names(asked);
  if (!asked.reader.ok()) return usage_error_of(asked);
  MUSTER_TRY(cli::Connection connection, connect(asked));
  MUSTER_TRY(const Names names,
             names_meant(asked, connection, [](const job::Job&) { return true; }));
  return Deletion(connection, project_of(asked)).run(names);
}

Result<int> suspend_command(Asked& asked) {
  return hold(
      asked, [](const job::Job& job) { return !job::is_final(job.phase) && !job.suspended; },
      &api::Client::suspend, "suspended");
}

Result<int> resume_command(Asked& asked) {
  return hold(
      asked, [](const job::Job& job) { return !job::is_final(job.phase) && job.suspended; },
      &api::Client::resume, "resumed");
}

}  // namespace muster::dialects::runai
