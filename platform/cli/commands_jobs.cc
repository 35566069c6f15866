// list, get, stop: looking at jobs and ending them.
#include "api/wire.h"
#include "cli/commands.h"
#include "cli/job_view.h"
#include "cli/metric_view.h"
#include "cli/report.h"
#include "cli/yaml_output.h"
#include "job/spec_table.h"

namespace muster::cli {

namespace {

std::string stop_text(const job::Job& job) {
  if (!job::is_final(job.phase)) return "stopping " + job.spec.name + "\n";
  return job.spec.name + " has ended: " + std::string(job::to_string(job.phase)) + "\n";
}

/// What its tasks use while it runs; nothing where that is not known.
std::string use_section(Connection& connection, const job::Job& job) {
  if (job.phase != job::Phase::kRunning) return "";
  const auto newest =
      connection.call([&](api::Client& client) { return client.metrics(job.id, {.last = true}); });
  const std::string table = newest ? use_table(of_living_tasks(job, *newest), "  ") : "";
  return table.empty() ? "" : "\nUSE\n" + table;
}

}  // namespace

Result<int> execute(const ListCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  const api::JobQuery query{.project = command.project, .labels = command.labels};
  MUSTER_TRY(const std::vector<job::Job> jobs,
             connection.call([&](api::Client& client) { return client.list_all(query); }));
  const std::string text = command.output == Output::kNames
                               ? names_of(jobs)
                               : job_table(jobs, base::SystemClock().now());
  MUSTER_CHECK(show(command.output, text, api::jobs_to_json(jobs)));
  return kExitDone;
}

Result<int> execute(const GetCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  MUSTER_TRY(const job::Job job,
             connection.call([&](api::Client& client) { return client.get(command.name); }));
  if (command.spec) {
    const std::string spec = record::to_json(job.spec, record::Form::kHuman);
    MUSTER_CHECK(show(command.output, json_to_yaml(spec), spec));
    return kExitDone;
  }
  const std::string use =
      command.output == Output::kTable ? use_section(connection, job) : std::string();
  MUSTER_CHECK(
      show(command.output, job_page(job, base::SystemClock().now()) + use, api::job_to_json(job)));
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

}  // namespace muster::cli
