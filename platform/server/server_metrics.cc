#include "server/server_metrics.h"

#include <array>
#include <map>

#include "server/metrics_text.h"

namespace muster::server {

using control::Controller;
using job::Phase;

namespace {

/// In the order of their numbers.
constexpr std::array kPhases{Phase::kQueued,    Phase::kStarting, Phase::kRunning,
                             Phase::kSucceeded, Phase::kFailed,   Phase::kStopped};

struct ProjectCounts {
  std::array<int, kPhases.size()> phases{};  ///< by their numbers
  int queue = 0;
};

std::map<std::string, ProjectCounts> count_jobs(const Controller& controller) {
  std::map<std::string, ProjectCounts> counts;
  for (const auto& status : controller.projects().list()) counts[status.project.name];
  // Jobs of one project often come in a row.
  auto of_project = counts.end();
  controller.jobs().each_job(false, std::nullopt, [&](const job::Job& job) {
    if (of_project == counts.end() || of_project->first != job.spec.project) {
      of_project = counts.try_emplace(job.spec.project).first;
    }
    ++of_project->second.phases[static_cast<size_t>(job.phase)];
    if (job.phase == Phase::kQueued && !job.suspended) ++of_project->second.queue;
    return true;
  });
  return counts;
}

void write_jobs(MetricsText& text, const Controller& controller) {
  const auto counts = count_jobs(controller);
  text.gauge("muster_jobs", "Jobs that there are, ended ones included.");
  for (const auto& [project, count] : counts) {
    for (const Phase phase : kPhases) {
      text.sample(count.phases[static_cast<size_t>(phase)],
                  {{"project", project}, {"phase", std::string(job::to_string(phase))}});
    }
  }
  text.gauge("muster_queue_depth", "Jobs that wait to start; suspended ones do not.");
  for (const auto& [project, count] : counts) text.sample(count.queue, {{"project", project}});
}

void write_counters(MetricsText& text, const control::Metrics& metrics) {
  const auto number = [](uint64_t value) { return static_cast<double>(value); };
  text.counter("muster_jobs_submitted_total", "Jobs that were taken on.");
  for (const auto& [project, count] : metrics.submitted) {
    text.sample(number(count), {{"project", project}});
  }
  text.counter("muster_jobs_finished_total", "Jobs that ended, by how they did.");
  for (const auto& [project, phases] : metrics.finished) {
    for (const auto& [phase, count] : phases) {
      text.sample(number(count), {{"project", project}, {"phase", phase}});
    }
  }
  text.counter("muster_evictions_total", "Jobs that had to leave their place.");
  text.sample(number(metrics.evictions));
  text.counter("muster_restarts_total", "Attempts of jobs that were given up for another.");
  text.sample(number(metrics.restarts));
  text.counter("muster_engine_errors_total", "Starts that the engine refused or lost.");
  text.sample(number(metrics.engine_errors));
  text.counter("muster_store_errors_total", "Commits that failed.");
  text.sample(number(metrics.store_errors));
}

void write_histograms(MetricsText& text, const control::Metrics& metrics) {
  text.histogram("muster_job_wait_seconds", "From the submission of a job until it runs.",
                 metrics.wait_seconds);
  text.histogram("muster_job_start_seconds", "From the start of a job's gang until it runs.",
                 metrics.start_seconds);
  text.histogram("muster_scheduler_cycle_seconds", "How long the scheduler took to plan.",
                 metrics.cycle_seconds);
  text.histogram("muster_store_commit_seconds", "How long the store took to commit.",
                 metrics.commit_seconds);
}

/// A GPU of which a part is taken counts for both, by its parts.
void write_gpus(MetricsText& text, const Controller& controller) {
  std::map<std::pair<std::string, std::string>, int64_t> milli;
  for (const job::Node& node : controller.nodes().list()) {
    const std::string unused = node.state == "ready" ? "free" : node.state;
    for (const char* state : {"used", "free"}) milli[{node.pool, state}];
    for (const job::Device& device : node.devices) {
      milli[{node.pool, "used"}] += 1000 - device.free_milli;
      milli[{node.pool, unused}] += device.free_milli;
    }
  }
  text.gauge("muster_gpus",
             "GPUs by what they do: used, free, or on a node that takes nothing new.");
  for (const auto& [key, count] : milli) {
    text.sample(static_cast<double>(count) / 1000, {{"pool", key.first}, {"state", key.second}});
  }
}

void write_requests(MetricsText& text, const RequestCounts& requests) {
  text.counter("muster_http_requests_total", "Requests that were answered.");
  for (const auto& [key, count] : requests.all()) {
    text.sample(static_cast<double>(count), {{"route", key.first}, {"status", key.second}});
  }
}

/// By the names that every program's figures have in Prometheus.
void write_process(MetricsText& text, const ProcessFigures& process) {
  text.counter("process_cpu_seconds_total", "CPU time of the server.");
  text.sample(process.cpu_seconds);
  text.gauge("process_resident_memory_bytes", "Memory of the server that is in RAM.");
  text.sample(static_cast<double>(process.resident_bytes));
  text.gauge("process_virtual_memory_bytes", "Address space of the server.");
  text.sample(static_cast<double>(process.virtual_bytes));
  text.gauge("process_open_fds", "File descriptors that the server has open.");
  text.sample(process.open_descriptors);
  text.gauge("process_max_fds", "File descriptors that it may have open.");
  text.sample(static_cast<double>(process.most_descriptors));
  text.gauge("process_start_time_seconds", "When the server was started, since the Unix epoch.");
  text.sample(process.started);
}

}  // namespace

std::string server_metrics(const Controller& controller, const RequestCounts& requests,
                           const ProcessFigures& process, const std::string& version) {
  MetricsText text;
  text.gauge("muster_build_info", "1; which version runs is in its label.");
  text.sample(1, {{"version", version}});
  write_jobs(text, controller);
  write_counters(text, controller.metrics());
  write_histograms(text, controller.metrics());
  write_gpus(text, controller);
  write_requests(text, requests);
  write_process(text, process);
  return text.text();
}

}  // namespace muster::server
