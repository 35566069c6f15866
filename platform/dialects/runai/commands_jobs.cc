// list jobs, list nodes, describe node.

#include <algorithm>
#include <array>
#include <functional>
#include <iostream>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "api/cluster_wire.h"
#include "api/job_query.h"
#include "api/job_rows.h"
#include "api/wire.h"
#include "base/units.h"
#include "cli/common/output.h"
#include "cli/connection/connection.h"
#include "cli/jobs/arrays.h"
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

/// The names of the command line. The first word may be the kind of object, as in `delete job dist` and
/// `delete job -A`. Alone, it is a name.
std::span<const std::string> names_of(const Invocation& invocation) {
  const std::span<const std::string> names = invocation.arguments.names;
  const bool names_the_kind = !names.empty() && (names.front() == "job" || names.front() == "jobs");
  const bool has_more = names.size() > 1 || invocation.reader.has("--all");
  return names_the_kind && has_more ? names.subspan(1) : names;
}

/// Reports a fault if the command line has neither names nor --all, or both.
void check_names(Invocation& invocation) {
  if (!invocation.reader.ok()) return;
  const bool all = invocation.reader.has("--all");
  const bool named = !names_of(invocation).empty();
  if (!all && !named)
    invocation.reader.fault("", "the name of a job is missing; --all selects all jobs");
  if (all && named) invocation.reader.fault("--all", "cannot be used with the names of jobs");
}

using Object = api::JobRow::Object;

/// A job, an array or a sweep that a command acts on.
struct Target {
  std::string name;
  std::string key;  ///< its name or id
  std::optional<Object>
      object;  ///< nothing: unknown; in the order of the lookup: job, array, sweep
};

/// The given names without duplicates.
std::vector<Target> named_targets(const Invocation& invocation) {
  std::vector<Target> targets;
  std::set<std::string> seen;
  for (const std::string& name : names_of(invocation)) {
    if (seen.insert(name).second) targets.push_back({.name = name, .key = name, .object = {}});
  }
  return targets;
}

/// The jobs, arrays and sweeps of a project by name, without the members of arrays and the trials of
/// sweeps.
Result<std::vector<api::JobRow>> top_rows(cli::Connection& connection, const std::string& project) {
  std::vector<api::JobRow> rows;
  api::JobQuery query{.project = project, .limit = api::kMostJobs, .top = true};
  do {
    auto page = connection.call([&](api::Client& client) { return client.list_rows(query); });
    if (!page && page.error().code == ErrorCode::kNotFound) return no_such_project(project);
    if (!page) return std::move(page).error();
    std::move(page->rows.begin(), page->rows.end(), std::back_inserter(rows));
    query.cursor = page->next;
  } while (!query.cursor.empty());
  std::erase_if(rows, [](const api::JobRow& row) { return row.object == Object::kSchedule; });
  std::sort(rows.begin(), rows.end(), [](const api::JobRow& left, const api::JobRow& right) {
    return left.name < right.name;
  });
  return rows;
}

struct Acts {
  using Act = std::function<Result<void>(api::Client&)>;
  Act on_job;
  Act on_array;
  Act on_sweep;
};

/// Performs the act for the kind of object that the target is, and returns this kind. kNotFound: there
/// is no such object.
Result<Object> act_on(cli::Connection& connection, const Target& target, const Acts& acts) {
  const std::array<std::pair<Object, const Acts::Act*>, 3> all{{{Object::kJob, &acts.on_job},
                                                                {Object::kArray, &acts.on_array},
                                                                {Object::kSweep, &acts.on_sweep}}};
  for (const auto& [object, act] : all) {
    if (target.object && *target.object != object) continue;
    auto done = connection.call(*act);
    if (done) return object;
    if (done.error().code != ErrorCode::kNotFound) return std::move(done).error();
  }
  return base::Error{.code = ErrorCode::kNotFound, .what = "there is no '" + target.name + "'"};
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

/// Ends jobs, arrays and sweeps, and removes them. All are asked to end before the first is awaited, so
/// that deleting many jobs takes no longer than the slowest.
class Deletion {
 public:
  Deletion(cli::Connection& connection, std::string project)
      : connection_(connection), project_(std::move(project)) {}

  Result<int> run(const std::vector<Target>& targets) {
    for (const Target& target : targets) stop(target);
    if (!ending_.empty()) MUSTER_CHECK(await_ends());
    for (const Target& target : stopped_) MUSTER_CHECK(remove(target));
    return failures_.code();
  }

 private:
  void stop(Target target) {
    const Acts acts{.on_job = [&](api::Client& client) -> Result<void> {
                      MUSTER_TRY(const job::Job job, client.stop(target.key, false));
                      if (!job::is_final(job.phase)) ending_.insert(job.spec.name);
                      return {};
                    },
                    .on_array = [&](api::Client& client) -> Result<void> {
                      MUSTER_CHECK(client.stop_array(target.key, false));
                      return {};
                    },
                    .on_sweep = [&](api::Client& client) -> Result<void> {
                      MUSTER_CHECK(client.change_sweep(target.key, "stop"));
                      return {};
                    }};
    const auto object = act_on(connection_, target, acts);
    if (!object) {
      const bool is_missing = object.error().code == ErrorCode::kNotFound;
      // Of all objects of the project, a missing one was removed by another client.
      if (is_missing && target.object) return;
      return failures_.add(is_missing ? no_such_job_to_delete(target.name, project_)
                                      : object.error());
    }
    target.object = *object;
    stopped_.push_back(std::move(target));
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

  Result<void> remove(const Target& target) {
    const auto removed = removed_by_server(target);
    if (!removed && removed.error().code != ErrorCode::kNotFound) {
      failures_.add(removed.error());
      return {};
    }
    return cli::show("Job " + target.name + " deleted successfully.\n");
  }

  /// Arrays and sweeps are removed when their last job has ended.
  Result<void> removed_by_server(const Target& target) {
    if (target.object == Object::kArray) {
      return cli::jobs::remove_array(connection_, target.key, false);
    }
    if (target.object == Object::kSweep) {
      return cli::jobs::remove_sweep(connection_, target.key, false);
    }
    return connection_.call([&](api::Client& client) { return client.remove(target.key); });
  }

  cli::Connection& connection_;
  std::string project_;
  std::vector<Target> stopped_;
  std::set<std::string> ending_;  ///< the names of the jobs that have not ended yet
  Failures failures_;
};

/// Suspends or resumes.
struct Hold {
  bool suspends = true;
  Result<job::Job> (api::Client::*of_job)(const std::string&);
  Result<job::Array> (api::Client::*of_array)(const std::string&);
  std::string_view of_sweep;
  std::string word;
};

/// The arrays and sweeps of the project that are not held yet, or are held.
Result<std::vector<Target>> groups_to_hold(cli::Connection& connection, const std::string& project,
                                           const Hold& hold) {
  MUSTER_TRY(const std::vector<api::JobRow> rows, top_rows(connection, project));
  std::vector<Target> targets;
  for (const api::JobRow& row : rows) {
    if (row.object == Object::kJob || job::is_final(row.phase)) continue;
    bool is_held = row.suspended;
    if (row.object == Object::kSweep) {
      const auto found = connection.call([&](api::Client& client) { return client.sweep(row.id); });
      if (!found && found.error().code == ErrorCode::kNotFound) continue;
      if (!found) return found.error();
      is_held = found->summary.phase == sweep::SweepPhase::kPaused;
    }
    if (is_held == hold.suspends) continue;
    targets.push_back({.name = row.name, .key = row.id, .object = row.object});
  }
  return targets;
}

Result<std::vector<Target>> jobs_to_hold(cli::Connection& connection, const std::string& project,
                                         const Hold& hold) {
  MUSTER_TRY(const std::vector<job::Job> jobs, list_jobs(connection, project));
  std::vector<Target> targets;
  for (const job::Job& job : jobs) {
    if (job::is_final(job.phase) || job.suspended == hold.suspends) continue;
    targets.push_back({.name = job.spec.name, .key = job.spec.name, .object = Object::kJob});
  }
  return targets;
}

Result<void> hold_each(cli::Connection& connection, const std::vector<Target>& targets,
                       const Hold& hold, Failures& failures) {
  for (const Target& target : targets) {
    const Acts acts{.on_job = [&](api::Client& client) -> Result<void> {
                      MUSTER_CHECK((client.*hold.of_job)(target.key));
                      return {};
                    },
                    .on_array = [&](api::Client& client) -> Result<void> {
                      MUSTER_CHECK((client.*hold.of_array)(target.key));
                      return {};
                    },
                    .on_sweep = [&](api::Client& client) -> Result<void> {
                      MUSTER_CHECK(client.change_sweep(target.key, hold.of_sweep));
                      return {};
                    }};
    const auto object = act_on(connection, target, acts);
    if (object) {
      MUSTER_CHECK(cli::show("Job " + target.name + " " + hold.word + " successfully.\n"));
    } else {
      const bool is_missing = object.error().code == ErrorCode::kNotFound;
      failures.add(is_missing ? job_not_found(target.name) : object.error());
    }
  }
  return {};
}

Result<int> run_hold(Invocation& invocation, const Hold& hold) {
  check_names(invocation);
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  MUSTER_TRY(cli::Connection connection, connect(invocation));
  Failures failures;
  if (!invocation.reader.has("--all")) {
    MUSTER_CHECK(hold_each(connection, named_targets(invocation), hold, failures));
    return failures.code();
  }
  const std::string project = project_of(invocation);
  // Arrays and sweeps come first, because they start jobs. Suspending an array suspends its members;
  // pausing a sweep does not suspend its running trials.
  MUSTER_TRY(const std::vector<Target> groups, groups_to_hold(connection, project, hold));
  MUSTER_CHECK(hold_each(connection, groups, hold, failures));
  MUSTER_TRY(const std::vector<Target> jobs, jobs_to_hold(connection, project, hold));
  MUSTER_CHECK(hold_each(connection, jobs, hold, failures));
  return failures.code();
}

}  // namespace

Result<int> delete_command(Invocation& invocation) {
  check_names(invocation);
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  MUSTER_TRY(cli::Connection connection, connect(invocation));
  const std::string project = project_of(invocation);
  std::vector<Target> targets = named_targets(invocation);
  if (invocation.reader.has("--all")) {
    MUSTER_TRY(const std::vector<api::JobRow> rows, top_rows(connection, project));
    for (const api::JobRow& row : rows) {
      targets.push_back({.name = row.name, .key = row.id, .object = row.object});
    }
  }
  return Deletion(connection, project).run(targets);
}

Result<int> suspend_command(Invocation& invocation) {
  return run_hold(invocation, {.suspends = true,
                               .of_job = &api::Client::suspend,
                               .of_array = &api::Client::suspend_array,
                               .of_sweep = "pause",
                               .word = "suspended"});
}

Result<int> resume_command(Invocation& invocation) {
  return run_hold(invocation, {.suspends = false,
                               .of_job = &api::Client::resume,
                               .of_array = &api::Client::resume_array,
                               .of_sweep = "resume",
                               .word = "resumed"});
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
