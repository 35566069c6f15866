// GET /healthz, /readyz, /metrics, /openapi.json: for monitoring.

#include "server/status_routes.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "api/openapi.h"
#include "api/routes.h"
#include "base/descriptors.h"
#include "server/listed_objects.h"
#include "server/router.h"
#include "server/routes.h"

namespace muster::server {

namespace {

/// The store's error may contain its address, so it goes to the log and not into the public answer.
RouteAnswer readiness(control::Controller& controller) {
  if (controller.ready()) return json_answer(200, R"({"status":"ok"})");
  return base::Error{.code = base::ErrorCode::kUnavailable,
                     .what = "the store accepts no changes at present",
                     .advice = "see the server's log for the reason"};
}

}  // namespace

void add_status_routes(Router& router, control::Controller& controller,
                       const RequestCounts& requests, std::string version) {
  router.add("GET", api::kHealthPath, Permission::kAnybody,
             at_once([](const ApiCall&) -> RouteAnswer {
               return json_answer(200, R"({"status":"ok"})");
             }));
  router.add("GET", api::kReadyPath, Permission::kAnybody,
             at_once([&controller](const ApiCall&) { return readiness(controller); }));
  router.add("GET", api::kOpenApiPath, Permission::kAnybody,
             at_once([](const ApiCall&) -> RouteAnswer {
               return json_answer(200, std::string(api::openapi_document()));
             }));
  router.add("GET", api::kMetricsPath, Permission::kServerViewer,
             at_once([&controller, &requests,
                      version = std::move(version)](const ApiCall&) -> RouteAnswer {
               return http::Response{
                   .content_type = std::string(kMetricsType),
                   .body = server_metrics(controller, requests, process_figures(), version)};
             }));
}

namespace {

/// The fields of /proc/self/stat after the program's name, which may contain any character; the
/// first is the third of proc(5).
std::istringstream stat_fields() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  return std::istringstream(name_end == std::string::npos ? "" : line.substr(name_end + 1));
}

double boot_time() {
  std::ifstream file("/proc/stat");
  std::string word;
  while (file >> word) {
    double seconds = 0;
    if (word == "btime" && file >> seconds) return seconds;
  }
  return 0;
}

}  // namespace

ProcessFigures process_figures() {
  ProcessFigures figures;
  std::istringstream stat = stat_fields();
  std::string state;
  stat >> state;
  // 4 to 24 of proc(5): ... 14 utime, 15 stime ... 22 starttime, 23 vsize, 24 rss.
  constexpr int kFirst = 4;
  constexpr int kLast = 24;
  int64_t user = 0;
  int64_t system = 0;
  int64_t start = 0;
  int64_t pages = 0;
  for (int field = kFirst; field <= kLast; ++field) {
    int64_t value = 0;
    stat >> value;
    if (field == 14) user = value;
    if (field == 15) system = value;
    if (field == 22) start = value;
    if (field == 23) figures.virtual_bytes = value;
    if (field == 24) pages = value;
  }
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  figures.cpu_seconds = static_cast<double>(user + system) / ticks;
  figures.started = boot_time() + static_cast<double>(start) / ticks;
  figures.resident_bytes = pages * ::sysconf(_SC_PAGESIZE);
  const base::Descriptors descriptors = base::count_descriptors();
  figures.open_descriptors = descriptors.open;
  figures.most_descriptors = descriptors.limit;
  return figures;
}

namespace {

/// Quotes are escaped in values of labels, but not in help.
std::string escaped(std::string_view text, bool quote) {
  std::string out;
  out.reserve(text.size());
  for (const char letter : text) {
    if (letter == '\\' || (quote && letter == '"')) out += '\\';
    if (letter == '\n') {
      out += "\\n";
    } else {
      out += letter;
    }
  }
  return out;
}

}  // namespace

void MetricsText::family(std::string name, std::string_view type, std::string_view help) {
  name_ = std::move(name);
  text_ += "# HELP " + name_ + " " + escaped(help, false) + "\n";
  text_ += "# TYPE " + name_ + " " + std::string(type) + "\n";
}

void MetricsText::line(const std::string& name, const Labels& labels, double value) {
  text_ += name;
  char separator = '{';
  for (const auto& [label, text] : labels) {
    text_ += separator;
    text_ += label + "=\"" + escaped(text, true) + "\"";
    separator = ',';
  }
  if (!labels.empty()) text_ += '}';
  text_ += " " + number(value) + "\n";
}

std::string MetricsText::number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

using control::Controller;
using job::Phase;

namespace {

struct ProjectCounts {
  std::array<int, job::kAllPhases.size()> phases{};  ///< by their numbers
  int queue = 0;
};

using CountsOfProjects = std::map<std::string, ProjectCounts, std::less<>>;

void count_part(const Controller& controller, size_t part, size_t parts, CountsOfProjects& counts) {
  // Consecutive jobs often belong to the same project.
  auto of_project = counts.end();
  controller.jobs().each_job_of_part(
      false, part, parts, job::FactTexts::kNone, [&](const job::JobFacts& job) {
        if (of_project == counts.end() || of_project->first != job.project) {
          of_project = counts.find(job.project);
        }
        if (of_project == counts.end()) {
          of_project = counts.try_emplace(std::string(job.project)).first;
        }
        ++of_project->second.phases[static_cast<size_t>(job.phase)];
        if (job.phase == Phase::kQueued && !job.suspended) ++of_project->second.queue;
        return true;
      });
}

CountsOfProjects count_jobs(const Controller& controller) {
  const size_t parts = parts_of_jobs(controller);
  std::vector<CountsOfProjects> counts(parts);
  for (const auto& status : controller.projects().list()) counts[0][status.project.name];
  examine_parts(parts, [&](size_t part) { count_part(controller, part, parts, counts[part]); });
  for (size_t part = 1; part < parts; ++part) {
    for (const auto& [project, more] : counts[part]) {
      ProjectCounts& sum = counts[0][project];
      for (size_t phase = 0; phase < more.phases.size(); ++phase) {
        sum.phases[phase] += more.phases[phase];
      }
      sum.queue += more.queue;
    }
  }
  return std::move(counts[0]);
}

void write_jobs(MetricsText& text, const Controller& controller) {
  const auto counts = count_jobs(controller);
  text.gauge("muster_jobs", "Existing jobs, including ended jobs.");
  for (const auto& [project, count] : counts) {
    for (const Phase phase : job::kAllPhases) {
      text.sample(count.phases[static_cast<size_t>(phase)],
                  {{"project", project}, {"phase", std::string(job::to_string(phase))}});
    }
  }
  text.gauge("muster_queue_depth", "Jobs that wait to start, without suspended jobs.");
  for (const auto& [project, count] : counts) text.sample(count.queue, {{"project", project}});
}

void write_counters(MetricsText& text, const control::Metrics& metrics) {
  const auto number = [](uint64_t value) { return static_cast<double>(value); };
  text.counter("muster_jobs_submitted_total", "Submitted jobs.");
  for (const auto& [project, count] : metrics.submitted) {
    text.sample(number(count), {{"project", project}});
  }
  text.counter("muster_jobs_finished_total", "Ended jobs, by result.");
  for (const auto& [project, phases] : metrics.finished) {
    for (const auto& [phase, count] : phases) {
      text.sample(number(count), {{"project", project}, {"phase", phase}});
    }
  }
  text.counter("muster_evictions_total", "Evicted jobs.");
  text.sample(number(metrics.evictions));
  text.counter("muster_restarts_total", "Attempts that were abandoned for another attempt.");
  text.sample(number(metrics.restarts));
  text.counter("muster_engine_errors_total", "Starts that the engine refused or lost.");
  text.sample(number(metrics.engine_errors));
  text.counter("muster_store_errors_total", "Failed commits.");
  text.sample(number(metrics.store_errors));
}

void write_histograms(MetricsText& text, const control::Metrics& metrics) {
  text.histogram("muster_job_wait_seconds", "From the submission of a job until it runs.",
                 metrics.wait_seconds);
  text.histogram("muster_job_start_seconds", "From the start of a job's gang until it runs.",
                 metrics.start_seconds);
  text.histogram("muster_scheduler_cycle_seconds", "Time that the scheduler took to plan.",
                 metrics.cycle_seconds);
  text.histogram("muster_store_commit_seconds", "Time that the store took to commit.",
                 metrics.commit_seconds);
}

/// A partly allocated GPU counts for both, in fractions.
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
  text.gauge("muster_gpus", "GPUs by state: used, free, or on a cordoned node.");
  for (const auto& [key, count] : milli) {
    text.sample(static_cast<double>(count) / 1000, {{"pool", key.first}, {"state", key.second}});
  }
}

void write_requests(MetricsText& text, const RequestCounts& requests) {
  text.counter("muster_http_requests_total", "Answered requests.");
  for (const auto& [key, count] : requests.all()) {
    text.sample(static_cast<double>(count), {{"route", key.first}, {"status", key.second}});
  }
}

/// With Prometheus' standard names for process metrics.
void write_process(MetricsText& text, const ProcessFigures& process) {
  text.counter("process_cpu_seconds_total", "CPU time of the server.");
  text.sample(process.cpu_seconds);
  text.gauge("process_resident_memory_bytes", "Resident memory of the server.");
  text.sample(static_cast<double>(process.resident_bytes));
  text.gauge("process_virtual_memory_bytes", "Address space of the server.");
  text.sample(static_cast<double>(process.virtual_bytes));
  text.gauge("process_open_fds", "Open file descriptors of the server.");
  text.sample(static_cast<double>(process.open_descriptors));
  text.gauge("process_max_fds", "Maximum number of open file descriptors.");
  text.sample(static_cast<double>(process.most_descriptors));
  text.gauge("process_start_time_seconds", "Start time of the server, since the Unix epoch.");
  text.sample(process.started);
}

}  // namespace

std::string server_metrics(const Controller& controller, const RequestCounts& requests,
                           const ProcessFigures& process, const std::string& version) {
  MetricsText text;
  text.gauge("muster_build_info", "Always 1; the label has the version of the server.");
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
