// get: a job or another object that `muster list` shows, or its spec as a job file.
#include "cli/jobs/jobs.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/array_wire.h"
#include "api/schedule_wire.h"
#include "api/sweep_wire.h"
#include "api/wire.h"
#include "base/json_text.h"
#include "cli/command/command.h"
#include "cli/common/array_view.h"
#include "cli/common/job_view.h"
#include "cli/common/output.h"
#include "cli/common/sweep_view.h"
#include "cli/connection/connection.h"
#include "cli/jobs/arrays.h"
#include "cli/metrics/metrics.h"
#include "job/spec_table.h"

namespace muster::cli::jobs {

namespace {

Call read_get(Reading& in) {
  return GetCommand{.name = in.name("job"),
                    .project = in.project_of_job(),
                    .spec = in.reader.has("--spec"),
                    .output = in.output()};
}

}  // namespace

Command get_command() {
  return {
      .name = "get",
      .alias = "describe",
      .help = "show a job, with its tasks and events; or an array, a sweep or a schedule",
      .read = read_get,
      .positionals = one_of(Offer::kJobs),
      .flags = Flags{{.name = "--spec",
                      .help = "print the submitted job as a job file for 'muster submit -f -'"}} +
               job_project_flag() + output_flag(),
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

Result<int> show_spec(const std::string& spec, Output output) {
  MUSTER_CHECK(show(output, json_to_yaml(spec), spec));
  return kExitDone;
}

Result<int> show_array(const job::Array& array, const GetCommand& command) {
  if (command.spec) {
    return show_spec(record::to_json(array.spec, record::Form::kHuman), command.output);
  }
  MUSTER_CHECK(show(command.output, array_page(array, base::SystemClock().now()),
                    api::array_to_json(array)));
  return kExitDone;
}

/// A sweep as a job file with a section `sweep`.
std::string sweep_as_file(const sweep::SweepSpec& spec) {
  auto file = base::parse_ordered_json(record::to_json(spec.job, record::Form::kHuman));
  auto search = base::parse_ordered_json(record::to_json(spec, record::Form::kHuman));
  search.erase("job");
  file["sweep"] = std::move(search);
  return base::json_text(file);
}

Result<int> show_sweep(const sweep::Sweep& sweep, const GetCommand& command) {
  if (command.spec) return show_spec(sweep_as_file(sweep.spec), command.output);
  MUSTER_CHECK(show(command.output, sweep_page(sweep, base::SystemClock().now()),
                    api::sweep_to_json(sweep)));
  return kExitDone;
}

Result<int> show_schedule(const job::Schedule& schedule, const GetCommand& command) {
  if (command.spec) {
    return show_spec(record::to_json(schedule.spec.job, record::Form::kHuman), command.output);
  }
  MUSTER_CHECK(show(command.output, schedule_page(schedule), api::schedule_to_json(schedule)));
  return kExitDone;
}

/// An array, a sweep or a schedule. Errors: `of_job`, if none of these has the name.
Result<int> show_other(Connection& connection, const base::Error& of_job,
                       const GetCommand& command) {
  MUSTER_TRY(const auto array, instead_of_job(connection, of_job, [&](api::Client& client) {
               return command.spec ? client.array_with_lines(command.name)
                                   : client.array(command.name);
             }));
  if (array) return show_array(*array, command);
  MUSTER_TRY(const auto sweep, instead_of_job(connection, of_job, [&](api::Client& client) {
               return client.sweep(command.name);
             }));
  if (sweep) return show_sweep(*sweep, command);
  MUSTER_TRY(const auto schedule, instead_of_job(connection, of_job, [&](api::Client& client) {
               return client.schedule(command.name);
             }));
  if (schedule) return show_schedule(*schedule, command);
  return of_job;
}

}  // namespace

Result<int> execute(const GetCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  const auto found = connection.call([&](api::Client& client) { return client.get(command.name); });
  if (!found) return show_other(connection, found.error(), command);
  const job::Job& job = *found;
  if (command.spec) {
    return show_spec(record::to_json(job.spec, record::Form::kHuman), command.output);
  }
  const std::string use =
      command.output == Output::kTable ? use_section(connection, job) : std::string();
  const std::string page = job_page(job, base::SystemClock().now(), connection.server().engine);
  MUSTER_CHECK(show(command.output, page + use, api::job_to_json(job)));
  return kExitDone;
}

}  // namespace muster::cli::jobs
