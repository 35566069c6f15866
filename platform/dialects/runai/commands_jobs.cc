// list jobs, list nodes, describe node.

#include <algorithm>
#include <iostream>
#include <set>
#include <utility>

#include "api/cluster_wire.h"
#include "api/wire.h"
#include "base/units.h"
#include "cli/common/output.h"
#include "cli/connection/connection.h"
#include "cli/logs/logs.h"
#include "dialects/runai/cluster_views.h"
#include "dialects/runai/commands.h"
#include "dialects/runai/job_views.h"

namespace muster::dialects::runai {

Result<int> list_jobs_command(Invocation& invocation) {
  const cli::Output output = output_of(invocation, {"table", "json", "yaml", "names"});
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  const bool all = invocation.reader.has("--all-projects");
  const std::string project = project_of(invocation);
  MUSTER_TRY(cli::Connection connection, connect(invocation));
  MUSTER_TRY(const std::vector<job::Job> jobs,
             list_jobs(connection, all ? std::nullopt : std::optional(project)));
  const std::string head = all ? "" : "Showing jobs for project " + project + "\n";
  const std::string text = output == cli::Output::kNames
                               ? cli::names_of(jobs)
                               : head + job_list(jobs, invocation.caller.now);
  MUSTER_CHECK(cli::show(output, text, api::jobs_to_json(jobs)));
  return cli::kExitDone;
}

Result<int> list_nodes_command(Invocation& invocation) {
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  MUSTER_TRY(cli::Connection connection, connect(invocation));
  MUSTER_TRY(const std::vector<job::Node> nodes,
             connection.call([](api::Client& client) { return client.nodes(); }));
  MUSTER_CHECK(cli::show(node_list(nodes)));
  return cli::kExitDone;
}

Result<int> describe_node_command(Invocation& invocation) {
  const std::string name = the_name(invocation, "node");
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  MUSTER_TRY(cli::Connection connection, connect(invocation));
  MUSTER_TRY(const job::Node node,
             connection.call([&](api::Client& client) { return client.node(name); }));
  MUSTER_CHECK(cli::show(node_description(node)));
  return cli::kExitDone;
}

// describe job, and get, its former name.

Result<int> describe_job_command(Invocation& invocation) {
  const std::string name = the_name(invocation, "job");
  const cli::Output output = output_of(invocation, {"table", "json", "yaml", "wide"});
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  const bool wide = invocation.reader.text("--output") == "wide";
  MUSTER_TRY(cli::Connection connection, connect(invocation));
  MUSTER_TRY(const job::Job job, find_job(connection, name, project_of(invocation)));
  const base::Time now = invocation.caller.now;
  MUSTER_CHECK(cli::show(output, job_description(job, now, wide), job_description_json(job, now)));
  return cli::kExitDone;
}

// top: an overview of allocated resources.

Result<int> top_nodes_command(Invocation& invocation) {
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  MUSTER_TRY(cli::Connection connection, connect(invocation));
  std::vector<job::Node> nodes;
  if (invocation.arguments.names.empty()) {
    MUSTER_TRY(nodes, connection.call([](api::Client& client) { return client.nodes(); }));
  } else {
    const std::string& name = invocation.arguments.names.front();
    MUSTER_TRY(job::Node node,
               connection.call([&](api::Client& client) { return client.node(name); }));
    nodes.push_back(std::move(node));
  }
  MUSTER_CHECK(cli::show(top_nodes(nodes, invocation.reader.has("--details"))));
  return cli::kExitDone;
}

Result<int> top_jobs_command(Invocation& invocation) {
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  const bool all = invocation.reader.has("--all-projects");
  MUSTER_TRY(cli::Connection connection, connect(invocation));
  MUSTER_TRY(std::vector<job::Job> jobs,
             list_jobs(connection, all ? std::nullopt : std::optional(project_of(invocation))));
  MUSTER_CHECK(cli::show(top_jobs(std::move(jobs), invocation.caller.now)));
  return cli::kExitDone;
}

// delete, suspend, resume: for named jobs, or all jobs of a project.

namespace {

using base::ErrorCode;
using Names = std::vector<std::string>;

/// Reports a fault if the command line has neither names nor --all, or both.
void check_names(Invocation& invocation) {
  if (!invocation.reader.ok()) return;
  const bool all = invocation.reader.has("--all");
  const bool named = !invocation.arguments.names.empty();
  if (!all && !named)
    invocation.reader.fault("", "the name of a job is missing; --all selects all jobs");
  if (all && named) invocation.reader.fault("--all", "cannot be used with the names of jobs");
}

/// The given names without duplicates, or the jobs of the project that `is_meant` selects.
Result<Names> names_meant(Invocation& invocation, cli::Connection& connection,
                          bool (*is_meant)(const job::Job&)) {
  Names names;
  if (invocation.reader.has("--all")) {
    MUSTER_TRY(const std::vector<job::Job> jobs, list_jobs(connection, project_of(invocation)));
    for (const job::Job& job : jobs) {
      if (is_meant(job)) names.push_back(job.spec.name);
    }
    return names;
  }
  for (const std::string& name : invocation.arguments.names) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

/// Prints failures; the code of the first failure becomes the exit code.
class Failures {
 public:
  void add(const base::Error& error) {
    std::cerr << cli::error_text(for_runai(error), "runai") << std::flush;
    if (code_ == cli::kExitDone) code_ = cli::exit_code_of(error);
  }
  int code() const { return code_; }

 private:
  int code_ = cli::kExitDone;
};

/// Ends jobs and removes them. All are asked to end before the first is awaited, so that deleting
/// many jobs takes no longer than the slowest.
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

  /// A missing job was removed by another client, which is the intended result.
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
  std::set<std::string> ending_;  ///< the jobs that have not ended yet
  Failures failures_;
};

using Act = Result<job::Job> (api::Client::*)(const std::string&);

Result<int> hold(Invocation& invocation, bool (*is_meant)(const job::Job&), Act act,
                 const std::string& word) {
  check_names(invocation);
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  MUSTER_TRY(cli::Connection connection, connect(invocation));
  MUSTER_TRY(const Names names, names_meant(invocation, connection, is_meant));
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

Result<int> delete_command(Invocation& invocation) {
  check_names(invocation);
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  MUSTER_TRY(cli::Connection connection, connect(invocation));
  MUSTER_TRY(const Names names,
             names_meant(invocation, connection, [](const job::Job&) { return true; }));
  return Deletion(connection, project_of(invocation)).run(names);
}

Result<int> suspend_command(Invocation& invocation) {
  return hold(
      invocation, [](const job::Job& job) { return !job::is_final(job.phase) && !job.suspended; },
      &api::Client::suspend, "suspended");
}

Result<int> resume_command(Invocation& invocation) {
  return hold(
      invocation, [](const job::Job& job) { return !job::is_final(job.phase) && job.suspended; },
      &api::Client::resume, "resumed");
}

// logs: the merged output of all pods of a job, or the output of one pod.

namespace {

/// As in Run:AI, -1 (and any other negative number) stands for all lines.
std::optional<int> tail_of(Invocation& invocation) {
  const int lines = invocation.reader.number("--tail", -1);
  return lines < 0 ? std::nullopt : std::optional(lines);
}

job::LogQuery read_query(Invocation& invocation) {
  cli::FlagReader& reader = invocation.reader;
  job::LogQuery query{.follow = reader.has("--follow")};
  const bool both = reader.has("--since") && reader.has("--since-time");
  if (both) reader.fault("--since-time", "cannot be used with --since");
  const char* const since = reader.has("--since-time") ? "--since-time" : "--since";
  query.since = reader.moment(since, invocation.caller.now);
  query.tail = tail_of(invocation);
  return query;
}

}  // namespace

Result<int> logs_command(Invocation& invocation) {
  cli::logs::FollowRequest request{.name = the_name(invocation, "job"),
                                   .query = read_query(invocation),
                                   .look = {},
                                   .program = "runai",
                                   .commands = kWords};
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  MUSTER_TRY(cli::Connection connection, connect(invocation));
  MUSTER_TRY(const job::Job job, find_job(connection, request.name, project_of(invocation)));
  const std::string pod = invocation.reader.text("--pod");
  if (!pod.empty()) {
    MUSTER_TRY(const job::Task task, find_pod(job, pod));
    request.query.task = task.name;
  }
  if (job.attempt == 0 && !request.query.follow) return nothing_printed_yet(job);
  // The output of a single pod has no prefix.
  request.look.prefix = pod.empty() && job.tasks.size() > 1;
  request.look.timestamps = invocation.reader.has("--timestamps");
  cli::Interrupts interrupts;
  MUSTER_TRY(const cli::logs::FollowEnd end, cli::logs::follow(connection, interrupts, request));
  if (end.how == cli::logs::FollowEnd::How::kPipeClosed) return cli::kExitBrokenPipe;
  if (end.how == cli::logs::FollowEnd::How::kInterrupted) return cli::kExitInterrupted;
  // As in Run:AI, the end of the job is not reported, and does not change the exit code.
  return cli::kExitDone;
}

}  // namespace muster::dialects::runai
