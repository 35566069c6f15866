// list, get, stop, delete: looking at jobs and ending them.
#include "api/wire.h"
#include "cli/commands.h"
#include "cli/job_view.h"
#include "cli/report.h"

namespace muster::cli {

namespace {

base::Time now() {
  return base::SystemClock().now();
}

std::string stop_text(const job::Job& job) {
  if (!job::is_final(job.phase)) return "stopping " + job.spec.name + "\n";
  return job.spec.name + " has ended: " + std::string(job::to_string(job.phase)) + "\n";
}

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
  return connection.call([&](api::Client& client) { return client.remove(name); });
}

}  // namespace

Result<int> execute(const ListCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  const api::JobQuery query{.project = command.project, .labels = command.labels};
  MUSTER_TRY(const std::vector<job::Job> jobs,
             connection.call([&](api::Client& client) { return client.list_all(query); }));
  const std::string text =
      command.output == Output::kNames ? names_of(jobs) : job_table(jobs, now());
  MUSTER_CHECK(show(command.output, text, api::jobs_to_json(jobs)));
  return kExitDone;
}

Result<int> execute(const GetCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  MUSTER_TRY(const job::Job job,
             connection.call([&](api::Client& client) { return client.get(command.name); }));
  MUSTER_CHECK(show(command.output, job_page(job, now()), api::job_to_json(job)));
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

Result<int> execute(const DeleteCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  return delete_each(command.names, command.ignore_missing, [&](const std::string& name) {
    return remove(connection, name, command.force);
  });
}

}  // namespace muster::cli
