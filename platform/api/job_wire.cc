#include <nlohmann/json.hpp>

#include "api/fields.h"
#include "api/json_writer.h"
#include "api/spec_wire.h"
#include "api/wire.h"
#include "api/wire_parts.h"
#include "job/fact_json.h"
#include "words/sentence.h"

namespace muster::api {

using job::Job;
using job::Task;
using job::TaskPhase;

void write_exit(JsonWriter& json, const job::ExitStatus& exit) {
  json.open('{');
  json.key("code").number(exit.code);
  json.key("signal").number(exit.signal);
  json.key("out_of_memory").flag(exit.out_of_memory);
  json.key("stopped").flag(exit.stopped);
  json.key("lost").flag(exit.lost);
  json.key("error").text(exit.error);
  json.key("advice").text(exit.advice);
  json.key("lost_log_bytes").number(exit.lost_log_bytes);
  json.key("explanation").prose(explain(exit));
  json.close('}');
}

job::ExitStatus read_exit(Fields& fields) {
  job::ExitStatus exit;
  fields.read("code", exit.code);
  fields.read("signal", exit.signal);
  fields.read("out_of_memory", exit.out_of_memory);
  fields.read("stopped", exit.stopped);
  fields.read("lost", exit.lost);
  fields.read("error", exit.error);
  fields.read("advice", exit.advice);
  fields.read("lost_log_bytes", exit.lost_log_bytes);
  fields.ignore("explanation");  // follows from the rest; there for those who read JSON themselves
  return exit;
}

namespace {

void write_task(JsonWriter& json, const Task& task) {
  json.open('{');
  json.key("name").text(task.name);
  json.key("role").text(to_string(task.role));
  json.key("hostname").text(task.hostname);
  json.key("seat").number(task.seat);
  json.key("node").text(task.node);
  json.key("devices").numbers(task.devices);
  json.key("gpu_share").milli(task.gpu_share_milli);
  json.key("phase").text(to_string(task.phase));
  if (task.exit) {
    json.key("exit");
    write_exit(json, *task.exit);
  }
  write_time(json, "started", task.started);
  write_time(json, "ended", task.ended);
  json.key("left").flag(task.left);
  json.close('}');
}

/// A server that tells no seats has tasks that sit in the order of its list.
Task read_task(Fields& fields, int index) {
  Task task{.seat = index};
  fields.read("name", task.name, Need::kRequired);
  fields.choose("role", task.role,
                {job::Role::kLauncher, job::Role::kWorker, job::Role::kSingle, job::Role::kChief,
                 job::Role::kParameterServer, job::Role::kMaster, job::Role::kEvaluator},
                job::to_string, Need::kRequired);
  fields.read("hostname", task.hostname);
  fields.read("seat", task.seat);
  fields.read("node", task.node);
  fields.read("devices", task.devices);
  fields.read_milli("gpu_share", task.gpu_share_milli);
  fields.choose("phase", task.phase,
                {TaskPhase::kPending, TaskPhase::kStarting, TaskPhase::kRunning, TaskPhase::kEnded},
                job::to_string, Need::kRequired);
  fields.object("exit", [&](Fields& inner) { task.exit = read_exit(inner); });
  fields.read("started", task.started);
  fields.read("ended", task.ended);
  fields.read("left", task.left);
  return task;
}

void write_failure(JsonWriter& json, const job::Failure& failure) {
  json.open('{');
  json.key("task").text(failure.task);
  if (failure.rank) json.key("rank").number(*failure.rank);
  json.key("cause").text(failure.cause);
  json.key("advice").text(failure.advice);
  json.key("last_lines").texts(failure.last_lines);
  json.close('}');
}

job::Failure read_failure(Fields& fields) {
  job::Failure failure;
  fields.read("task", failure.task);
  fields.read("rank", failure.rank);
  fields.read("cause", failure.cause, Need::kRequired);
  fields.read("advice", failure.advice);
  fields.read("last_lines", failure.last_lines);
  return failure;
}

void write_launch(JsonWriter& json, const job::LaunchFacts& launch) {
  json.open('{');
  json.key("by").text(to_string(launch.by));
  json.key("why").prose(launch.why);
  json.key("mpi").prose(launch.mpi);
  json.close('}');
}

job::LaunchFacts read_launch(Fields& fields) {
  using job::LaunchBy;
  job::LaunchFacts launch;
  fields.choose("by", launch.by,
                {LaunchBy::kAuto, LaunchBy::kSsh, LaunchBy::kAgent, LaunchBy::kSrun},
                job::to_string, Need::kRequired);
  fields.read("why", launch.why);
  fields.read("mpi", launch.mpi);
  return launch;
}

void write_progress(JsonWriter& json, const job::Progress& progress) {
  json.open('{');
  json.key("unit").text(progress.unit);
  json.key("done").real(progress.done);
  json.key("total").real(progress.total);
  write_time(json, "ends", progress.ends);
  json.close('}');
}

job::Progress read_progress(Fields& fields) {
  job::Progress progress;
  fields.read("unit", progress.unit, Need::kRequired);
  fields.read("done", progress.done, Need::kRequired);
  fields.read("total", progress.total, Need::kRequired);
  fields.read("ends", progress.ends);
  return progress;
}

/// Of a kind that this client does not know, what it is called remains.
void read_eviction(Fields& fields, std::optional<job::Eviction>& eviction) {
  std::optional<std::string> text;
  fields.read("eviction", text);
  const Fields::Json* const fact = fields.value("eviction_fact");
  if (fact != nullptr) eviction = job::eviction_of(*fact);
  if (text && !eviction) eviction = job::SlurmEnded{.text = *text};
}

void write_lists(JsonWriter& json, const Job& job) {
  json.key("tasks").open('[');
  for (const Task& task : job.tasks) write_task(json, task);
  json.close(']');
  write_events(json, job.events);
}

}  // namespace

void write_job(JsonWriter& json, const Job& job) {
  json.open('{');
  json.key("id").text(job.id);
  json.key("owner").text(job.owner);
  json.key("spec");
  write_spec(json, job.spec);
  json.key("phase").text(to_string(job.phase));
  write_reason(json, job.reason, "reason_details");
  write_time(json, "may_start", job.may_start);
  json.key("attempt").number(job.attempt);
  json.key("restarts").number(job.restarts);
  json.key("retries_used").number(job.retries_used);
  json.key("avoided_nodes").texts(job.avoided_nodes);
  json.key("suspended").flag(job.suspended);
  json.key("stop_requested").flag(job.stop_requested);
  if (job.eviction) {
    json.key("eviction").prose(words::sentence(*job.eviction));
    json.key("eviction_fact").value(job::to_text(job::to_json(*job.eviction)));
  }
  json.key("submitted").time(job.submitted);
  write_time(json, "started", job.started);
  write_time(json, "ended", job.ended);
  if (job.exit_code) json.key("exit_code").number(*job.exit_code);
  if (job.failure) {
    json.key("failure");
    write_failure(json, *job.failure);
  }
  if (job.launch) {
    json.key("launch");
    write_launch(json, *job.launch);
  }
  write_time(json, "kept_until", job.kept_until);
  if (job.unreadable) json.key("unreadable").flag(true);
  if (job.progress) {
    json.key("progress");
    write_progress(json, *job.progress);
  }
  write_lists(json, job);
  json.close('}');
}

void read_job(Fields& fields, Job& job) {
  fields.read("id", job.id, Need::kRequired);
  fields.read("owner", job.owner);
  fields.object("spec", [&](Fields& inner) { read_spec(inner, job.spec); }, Need::kRequired);
  read_phase(fields, job.phase);
  read_reason(fields, job.reason, "reason_details");
  fields.read("may_start", job.may_start);
  fields.read("attempt", job.attempt);
  fields.read("restarts", job.restarts);
  fields.read("retries_used", job.retries_used);
  fields.read("avoided_nodes", job.avoided_nodes);
  fields.read("suspended", job.suspended);
  fields.read("stop_requested", job.stop_requested);
  read_eviction(fields, job.eviction);
  fields.read("submitted", job.submitted, Need::kRequired);
  fields.read("started", job.started);
  fields.read("ended", job.ended);
  fields.read("exit_code", job.exit_code);
  fields.object("failure", [&](Fields& inner) { job.failure = read_failure(inner); });
  fields.object("launch", [&](Fields& inner) { job.launch = read_launch(inner); });
  fields.read("kept_until", job.kept_until);
  fields.read("unreadable", job.unreadable);
  fields.object("progress", [&](Fields& inner) { job.progress = read_progress(inner); });
  fields.each("tasks", [&](Fields& inner) {
    job.tasks.push_back(read_task(inner, static_cast<int>(job.tasks.size())));
  });
  read_events(fields, job.events);
}

std::string job_to_json(const Job& job) {
  std::string text;
  JsonWriter json(text);
  write_job(json, job);
  return text;
}

Result<Job> job_from_json(std::string_view text) {
  Job job;
  MUSTER_CHECK(read_document(text, "job", [&](Fields& fields) { read_job(fields, job); }));
  return job;
}

std::string jobs_to_json(const std::vector<Job>& jobs) {
  std::string text;
  JsonWriter json(text);
  json.open('{').key("jobs").open('[');
  for (const Job& job : jobs) write_job(json, job);
  json.close(']').close('}');
  return text;
}

Result<std::vector<Job>> jobs_from_json(std::string_view text) {
  std::vector<Job> jobs;
  MUSTER_CHECK(read_document(text, "list of jobs", [&](Fields& fields) {
    fields.each(
        "jobs", [&](Fields& inner) { read_job(inner, jobs.emplace_back()); }, Need::kRequired);
  }));
  return jobs;
}

}  // namespace muster::api
