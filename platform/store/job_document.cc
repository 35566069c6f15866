#include "store/job_document.h"

#include <nlohmann/json.hpp>

namespace muster::store {

using job::Job;
using nlohmann::json;

namespace {

// Arguments and environment may hold any byte. CBOR keeps them as they are; JSON text would not.
json bytes(const std::string& text) {
  return json::binary_t({text.begin(), text.end()});
}

std::string text_of(const json& value) {
  const json::binary_t& binary = value.get_binary();
  return {binary.begin(), binary.end()};
}

json time(base::Time value) {
  return value.time_since_epoch().count();
}
base::Time time_of(const json& value) {
  return base::Time(std::chrono::nanoseconds(value.get<int64_t>()));
}

template <class T, class Write>
json optional(const std::optional<T>& value, Write write) {
  return value ? json(write(*value)) : json();
}

template <class T, class Read>
std::optional<T> optional_of(const json& value, Read read) {
  return value.is_null() ? std::nullopt : std::optional<T>(read(value));
}

template <class T, class Write>
json list(const std::vector<T>& values, Write write) {
  json result = json::array();
  for (const T& value : values) result.push_back(write(value));
  return result;
}

template <class T, class Read>
std::vector<T> list_of(const json& values, Read read) {
  std::vector<T> result;
  for (const json& value : values) result.push_back(read(value));
  return result;
}

json write_spec(const job::JobSpec& spec) {
  json environment = json::array();
  for (const auto& [name, value] : spec.environment) {
    environment.push_back(json::array({name, bytes(value)}));
  }
  return {{"name", spec.name},
          {"project", spec.project},
          {"kind", job::to_string(spec.kind)},
          {"command", list(spec.command, bytes)},
          {"workers", spec.workers},
          {"slots_per_worker", spec.slots_per_worker},
          {"gpus", spec.resources.gpus},
          {"cpus", spec.resources.cpus},
          {"memory_bytes", spec.resources.memory_bytes},
          {"environment", environment},
          {"folder", bytes(spec.folder)},
          {"sandbox", job::to_string(spec.sandbox)},
          {"start_timeout_ms", spec.start_timeout.count()},
          {"grace_ms", spec.grace.count()}};
}

job::JobSpec read_spec(const json& value) {
  job::JobSpec spec{
      .name = value.at("name"),
      .project = value.at("project"),
      .kind = job::kind_of(value.at("kind").get<std::string>()).value(),
      .command = list_of<std::string>(value.at("command"), text_of),
      .workers = value.at("workers"),
      .slots_per_worker = value.at("slots_per_worker"),
      .resources = {.gpus = value.at("gpus"),
                    .cpus = value.at("cpus"),
                    .memory_bytes = value.at("memory_bytes")},
      .folder = text_of(value.at("folder")),
      .sandbox = job::sandbox_of(value.at("sandbox").get<std::string>()).value(),
      .start_timeout = std::chrono::milliseconds(value.at("start_timeout_ms").get<int64_t>()),
      .grace = std::chrono::milliseconds(value.at("grace_ms").get<int64_t>())};
  for (const json& entry : value.at("environment")) {
    spec.environment[entry.at(0)] = text_of(entry.at(1));
  }
  return spec;
}

json write_exit(const job::ExitStatus& exit) {
  return {{"code", exit.code},       {"signal", exit.signal}, {"out_of_memory", exit.out_of_memory},
          {"stopped", exit.stopped}, {"lost", exit.lost},     {"error", bytes(exit.error)}};
}

job::ExitStatus read_exit(const json& value) {
  return {.code = value.at("code"),
          .signal = value.at("signal"),
          .out_of_memory = value.at("out_of_memory"),
          .stopped = value.at("stopped"),
          .lost = value.at("lost"),
          .error = text_of(value.at("error"))};
}

json write_task(const job::Task& task) {
  return {{"name", task.name},
          {"role", job::to_string(task.role)},
          {"hostname", task.hostname},
          {"node", task.node},
          {"phase", job::to_string(task.phase)},
          {"exit", optional(task.exit, write_exit)},
          {"started", optional(task.started, time)},
          {"ended", optional(task.ended, time)}};
}

job::Task read_task(const json& value) {
  return {.name = value.at("name"),
          .role = job::role_of(value.at("role").get<std::string>()).value(),
          .hostname = value.at("hostname"),
          .node = value.at("node"),
          .phase = job::task_phase_of(value.at("phase").get<std::string>()).value(),
          .exit = optional_of<job::ExitStatus>(value.at("exit"), read_exit),
          .started = optional_of<base::Time>(value.at("started"), time_of),
          .ended = optional_of<base::Time>(value.at("ended"), time_of)};
}

json write_failure(const job::Failure& failure) {
  return {{"task", failure.task},
          {"cause", bytes(failure.cause)},
          {"advice", failure.advice},
          {"last_lines", list(failure.last_lines, bytes)}};
}

job::Failure read_failure(const json& value) {
  return {.task = value.at("task"),
          .cause = text_of(value.at("cause")),
          .advice = value.at("advice"),
          .last_lines = list_of<std::string>(value.at("last_lines"), text_of)};
}

json write_event(const job::Event& event) {
  return {{"time", time(event.time)}, {"text", bytes(event.text)}};
}

job::Event read_event(const json& value) {
  return {.time = time_of(value.at("time")), .text = text_of(value.at("text"))};
}

Job read_job(const json& value) {
  return {.id = value.at("id"),
          .spec = read_spec(value.at("spec")),
          .phase = job::phase_of(value.at("phase").get<std::string>()).value(),
          .reason = text_of(value.at("reason")),
          .attempt = value.at("attempt"),
          .stop_requested = value.at("stop_requested"),
          .submitted = time_of(value.at("submitted")),
          .started = optional_of<base::Time>(value.at("started"), time_of),
          .ended = optional_of<base::Time>(value.at("ended"), time_of),
          .exit_code = optional_of<int>(value.at("exit_code"),
                                        [](const json& code) { return code.get<int>(); }),
          .failure = optional_of<job::Failure>(value.at("failure"), read_failure),
          .tasks = list_of<job::Task>(value.at("tasks"), read_task),
          .events = list_of<job::Event>(value.at("events"), read_event)};
}

}  // namespace

std::string to_document(const Job& job) {
  const json value = {{"id", job.id},
                      {"spec", write_spec(job.spec)},
                      {"phase", job::to_string(job.phase)},
                      {"reason", bytes(job.reason)},
                      {"attempt", job.attempt},
                      {"stop_requested", job.stop_requested},
                      {"submitted", time(job.submitted)},
                      {"started", optional(job.started, time)},
                      {"ended", optional(job.ended, time)},
                      {"exit_code", optional(job.exit_code, [](int code) { return code; })},
                      {"failure", optional(job.failure, write_failure)},
                      {"tasks", list(job.tasks, write_task)},
                      {"events", list(job.events, write_event)}};
  std::string document;
  json::to_cbor(value, document);
  return document;
}

base::Result<Job> from_document(std::string_view document) {
  try {
    return read_job(json::from_cbor(document));
  } catch (const std::exception& error) {
    return base::Error{
        .code = base::ErrorCode::kInternal,
        .what = std::string("the database holds a job that cannot be read: ") + error.what()};
  }
}

}  // namespace muster::store
