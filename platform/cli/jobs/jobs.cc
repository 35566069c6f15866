// get: a job, or its spec as a job file.
#include "cli/jobs/jobs.h"

#include <string>
#include <vector>

#include "api/array_wire.h"
#include "api/wire.h"
#include "cli/command/command.h"
#include "cli/common/array_view.h"
#include "cli/common/job_view.h"
#include "cli/common/output.h"
#include "cli/connection/connection.h"
#include "cli/jobs/arrays.h"
#include "cli/metrics/metrics.h"
#include "job/spec_table.h"

namespace muster::cli::jobs {

namespace {

Call read_get(Reading& in) {
  return GetCommand{.name = in.name("job"),
                    .project = in.whose_job(),
                    .spec = in.reader.has("--spec"),
                    .output = in.output()};
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

namespace {

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

}  // namespace muster::cli::jobs
