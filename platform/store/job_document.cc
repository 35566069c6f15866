#include "store/job_document.h"

#include <nlohmann/json.hpp>

#include "job/fact_json.h"
#include "store/spec_document.h"

namespace muster::store {

using job::Job;

namespace {

/// Few tasks have advice or lost output: only then it is written.
void write_exit(CborWriter& out, const job::ExitStatus& exit) {
  out.map(6 + (exit.advice.empty() ? 0 : 1) + (exit.lost_log_bytes == 0 ? 0 : 1));
  out.key("code").number(exit.code);
  out.key("signal").number(exit.signal);
  out.key("out_of_memory").flag(exit.out_of_memory);
  out.key("stopped").flag(exit.stopped);
  out.key("lost").flag(exit.lost);
  out.key("error").bytes(exit.error);
  if (!exit.advice.empty()) out.key("advice").bytes(exit.advice);
  if (exit.lost_log_bytes != 0) out.key("lost_log_bytes").number(exit.lost_log_bytes);
}

job::ExitStatus read_exit(const CborValue& value) {
  job::ExitStatus exit{.code = value.at("code").small_number(),
                       .signal = value.at("signal").small_number(),
                       .out_of_memory = value.at("out_of_memory").flag(),
                       .stopped = value.at("stopped").flag(),
                       .lost = value.at("lost").flag(),
                       .error = bytes_of(value.at("error"))};
  read_if_there(value, "advice", exit.advice, bytes_of);
  read_if_there(value, "lost_log_bytes", exit.lost_log_bytes, number_of);
  return exit;
}

void write_moment(CborWriter& out, std::string_view name, const std::optional<base::Time>& time) {
  out.key(name);
  write_optional(out, time, [&](base::Time moment) { write_time(out, moment); });
}

/// Most tasks have the seat of their place in the list and are there until the end: only what is
/// otherwise is written.
void write_task(CborWriter& out, const job::Task& task, int index) {
  const bool sits_elsewhere = task.seat != index;
  out.map(10 + (sits_elsewhere ? 1 : 0) + (task.left ? 1 : 0));
  out.key("name").text(task.name);
  out.key("role").text(job::to_string(task.role));
  out.key("hostname").text(task.hostname);
  out.key("node").text(task.node);
  out.key("devices").list(task.devices.size());
  for (const int device : task.devices) out.number(device);
  out.key("gpu_share_milli").number(task.gpu_share_milli);
  out.key("phase").text(job::to_string(task.phase));
  out.key("exit");
  write_optional(out, task.exit, [&](const job::ExitStatus& exit) { write_exit(out, exit); });
  write_moment(out, "started", task.started);
  write_moment(out, "ended", task.ended);
  if (sits_elsewhere) out.key("seat").number(task.seat);
  if (task.left) out.key("left").flag(true);
}

job::Task read_task(const CborValue& value, int index) {
  job::Task task{.name = value.at("name").text(),
                 .role = value_of(value.at("role"), job::role_of),
                 .hostname = value.at("hostname").text(),
                 .seat = index,
                 .node = value.at("node").text(),
                 .phase = value_of(value.at("phase"), job::task_phase_of)};
  read_if_there(value, "devices", task.devices, ints_of);
  read_if_there(value, "gpu_share_milli", task.gpu_share_milli, int_of);
  read_if_there(value, "exit", task.exit, read_exit);
  read_if_there(value, "started", task.started, time_of);
  read_if_there(value, "ended", task.ended, time_of);
  read_if_there(value, "seat", task.seat, int_of);
  read_if_there(value, "left", task.left, flag_of);
  return task;
}

std::vector<job::Task> read_tasks(const CborValue& values) {
  std::vector<job::Task> tasks;
  tasks.reserve(values.list().size());
  for (const CborValue& value : values.list()) {
    tasks.push_back(read_task(value, static_cast<int>(tasks.size())));
  }
  return tasks;
}

void write_failure(CborWriter& out, const job::Failure& failure) {
  out.map(5);
  out.key("task").text(failure.task);
  out.key("rank");
  write_optional(out, failure.rank, [&](int rank) { out.number(rank); });
  out.key("cause").bytes(failure.cause);
  out.key("advice").text(failure.advice);
  out.key("last_lines");
  write_bytes_list(out, failure.last_lines);
}

job::Failure read_failure(const CborValue& value) {
  job::Failure failure{.task = value.at("task").text(),
                       .rank = {},
                       .cause = bytes_of(value.at("cause")),
                       .advice = value.at("advice").text(),
                       .last_lines = bytes_list_of(value.at("last_lines"))};
  read_if_there(value, "rank", failure.rank, int_of);
  return failure;
}

void write_launch(CborWriter& out, const job::LaunchFacts& launch) {
  out.map(3);
  out.key("by").text(job::to_string(launch.by));
  out.key("why").bytes(launch.why);
  out.key("mpi").bytes(launch.mpi);
}

job::LaunchFacts read_launch(const CborValue& value) {
  return {.by = value_of(value.at("by"), job::launch_by_of),
          .why = bytes_of(value.at("why")),
          .mpi = bytes_of(value.at("mpi"))};
}

/// Facts are CBOR of their own in the document: the JSON of job/fact_json.h.
template <class Value>
void write_fact(CborWriter& out, const Value& value) {
  const std::vector<uint8_t> bytes = nlohmann::json::to_cbor(job::to_json(value));
  out.bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

template <class Value>
Value fact_in(const CborValue& value, std::optional<Value> (*read)(const nlohmann::json&)) {
  const std::string bytes = value.bytes();
  const auto json = nlohmann::json::from_cbor(bytes, true, false);
  auto fact = read(json);
  if (!fact) throw std::runtime_error("a fact of it cannot be read");
  return *std::move(fact);
}

job::Event read_event(const CborValue& value) {
  return {.time = time_of(value.at("time")), .what = fact_in(value.at("what"), job::fact_of)};
}

void write_waiting(CborWriter& out, const Job& job) {
  write_fact(out.key("reason"), job.reason);
  write_moment(out, "may_start", job.may_start);
  out.key("suspended").flag(job.suspended);
}

void write_attempts(CborWriter& out, const Job& job) {
  out.key("attempt").number(job.attempt);
  out.key("restarts").number(job.restarts);
  out.key("retries_used").number(job.retries_used);
  out.key("avoided_nodes");
  write_bytes_list(out, job.avoided_nodes);
}

void write_end(CborWriter& out, const Job& job) {
  out.key("stop_requested").flag(job.stop_requested);
  out.key("eviction");
  write_optional(out, job.eviction, [&](const job::Eviction& why) { write_fact(out, why); });
  out.key("exit_code");
  write_optional(out, job.exit_code, [&](int code) { out.number(code); });
  out.key("failure");
  write_optional(out, job.failure,
                 [&](const job::Failure& failure) { write_failure(out, failure); });
}

void write_lists(CborWriter& out, const Job& job) {
  out.key("tasks").list(job.tasks.size());
  int index = 0;
  for (const job::Task& task : job.tasks) write_task(out, task, index++);
  out.key("events").list(job.events.size());
  for (const job::Event& event : job.events) {
    out.map(2).key("time");
    write_time(out, event.time);
    write_fact(out.key("what"), event.what);
  }
}

Job read_job(const CborValue& value) {
  Job job{.id = value.at("id").text(),
          .spec = read_spec(value.at("spec")),
          .phase = value_of(value.at("phase"), job::phase_of),
          .reason = fact_in(value.at("reason"), job::reason_of),
          .attempt = value.at("attempt").small_number(),
          .stop_requested = value.at("stop_requested").flag(),
          .submitted = time_of(value.at("submitted")),
          .tasks = read_tasks(value.at("tasks")),
          .events = list_of<job::Event>(value.at("events"), read_event)};
  read_if_there(value, "owner", job.owner, [](const CborValue& owner) { return owner.text(); });
  read_if_there(value, "may_start", job.may_start, time_of);
  read_if_there(value, "restarts", job.restarts, int_of);
  read_if_there(value, "retries_used", job.retries_used, int_of);
  read_if_there(value, "avoided_nodes", job.avoided_nodes, bytes_list_of);
  read_if_there(value, "suspended", job.suspended, flag_of);
  read_if_there(value, "eviction", job.eviction,
                [](const CborValue& why) { return fact_in(why, job::eviction_of); });
  read_if_there(value, "started", job.started, time_of);
  read_if_there(value, "ended", job.ended, time_of);
  read_if_there(value, "exit_code", job.exit_code,
                [](const CborValue& code) { return code.small_number(); });
  read_if_there(value, "failure", job.failure, read_failure);
  read_if_there(value, "launch", job.launch, read_launch);
  read_if_there(value, "sealed_seed", job.sealed_seed, bytes_of);
  return job;
}

}  // namespace

std::string to_document(const Job& job) {
  std::string document;
  CborWriter out(document);
  out.map(20 + (job.launch ? 1 : 0) + (job.sealed_seed.empty() ? 0 : 1));
  out.key("id").text(job.id);
  out.key("owner").text(job.owner);
  out.key("spec");
  write_spec(out, job.spec);
  out.key("phase").text(job::to_string(job.phase));
  write_waiting(out, job);
  write_attempts(out, job);
  write_end(out, job);
  out.key("submitted");
  write_time(out, job.submitted);
  write_moment(out, "started", job.started);
  write_moment(out, "ended", job.ended);
  if (job.launch) write_launch(out.key("launch"), *job.launch);
  if (!job.sealed_seed.empty()) out.key("sealed_seed").bytes(job.sealed_seed);
  write_lists(out, job);
  return document;
}

base::Result<Job> from_document(std::string_view document) {
  return read_document(document, "job", read_job);
}

}  // namespace muster::store
