#include "dialects/gradient/metric_pods.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace muster::dialects::gradient {

namespace {

using job::MetricPoint;
using job::MetricSeries;

struct Counterpart {
  std::string_view gradient;
  std::string_view ours;
};

constexpr std::array<Counterpart, 7> kCounterparts{{{"cpuPercentage", job::kCpuPercent},
                                                    {"memoryUsage", job::kMemoryBytes},
                                                    {"gpuMemoryFree", job::kGpuMemoryFree},
                                                    {"gpuMemoryUsed", job::kGpuMemoryBytes},
                                                    {"gpuPowerDraw", job::kGpuPowerWatts},
                                                    {"gpuTemp", job::kGpuCelsius},
                                                    {"gpuUtilization", job::kGpuPercent}}};
/// What is used of what there is, which Muster does not sample as such.
constexpr std::string_view kMemoryPart = "gpuMemoryUtilization";

std::string counterpart_of(const std::string& gradient_name) {
  for (const Counterpart& pair : kCounterparts) {
    if (pair.gradient == gradient_name) return std::string(pair.ours);
  }
  return gradient_name;
}

/// The series of a metric, one a task, in the order in which the tasks first come.
std::vector<MetricSeries> one_a_task(const std::vector<MetricSeries>& all,
                                     const std::string& metric) {
  std::vector<MetricSeries> chosen;
  for (const MetricSeries& series : all) {
    if (series.metric != metric || series.points.empty()) continue;
    const auto same = std::find_if(chosen.begin(), chosen.end(), [&](const MetricSeries& other) {
      return other.task == series.task;
    });
    if (same == chosen.end()) {
      chosen.push_back(series);
    } else if (series.rank < same->rank) {  // none is less than any
      *same = series;
    }
  }
  return chosen;
}

std::optional<double> value_at(const MetricSeries& series, base::Time time) {
  const auto found = std::find_if(series.points.begin(), series.points.end(),
                                  [&](const MetricPoint& point) { return point.time == time; });
  if (found == series.points.end()) return std::nullopt;
  return found->value;
}

/// Per cent of its GPUs' memory, where both halves were sampled.
std::vector<MetricSeries> memory_part(const std::vector<MetricSeries>& all) {
  std::vector<MetricSeries> parts;
  const std::vector<MetricSeries> free = one_a_task(all, std::string(job::kGpuMemoryFree));
  for (MetricSeries& used : one_a_task(all, std::string(job::kGpuMemoryBytes))) {
    const auto other = std::find_if(free.begin(), free.end(), [&](const MetricSeries& series) {
      return series.task == used.task;
    });
    if (other == free.end()) continue;
    MetricSeries part{.metric = std::string(kMemoryPart), .task = used.task, .rank = {}};
    for (const MetricPoint& point : used.points) {
      const auto rest = value_at(*other, point.time);
      if (!rest || point.value + *rest <= 0) continue;
      part.points.push_back({point.time, 100 * point.value / (point.value + *rest)});
    }
    if (!part.points.empty()) parts.push_back(std::move(part));
  }
  return parts;
}

/// As Gradient's server writes numbers: "5881856", "0", "93.25".
std::string value_text(double value) {
  std::array<char, 32> digits{};
  constexpr double kExact = 9007199254740992.0;  // above it, not every whole number is a double
  const bool is_whole = std::abs(value) < kExact && value == std::trunc(value);
  const auto end =
      is_whole
          ? std::to_chars(digits.data(), digits.data() + digits.size(), static_cast<int64_t>(value))
                .ptr
          : std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return {digits.data(), end};
}

int64_t seconds_of(base::Time time) {
  return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

/// The chief of a TensorFlow cluster is its first worker.
std::string_view kind_of_pod(job::Role role) {
  switch (role) {
    case job::Role::kLauncher:
    case job::Role::kMaster:
      return "master";
    case job::Role::kParameterServer:
      return "ps";
    case job::Role::kEvaluator:
      return "evaluator";
    case job::Role::kSingle:
    case job::Role::kChief:
    case job::Role::kWorker:
      break;
  }
  return "worker";
}

}  // namespace

std::string pod_of(const job::Job& job, std::string_view task) {
  std::map<std::string_view, int> counts;  // by kind of pod
  for (const job::Task& one : job.tasks) {
    const std::string_view kind = kind_of_pod(one.role);
    const int number = counts[kind]++;
    if (one.name != task) continue;
    return "mljob-" + job.id + "-" + std::to_string(number) + "-" + std::string(kind);
  }
  return "mljob-" + job.id + "-" + std::string(task);
}

std::vector<std::string> metrics_behind(const std::vector<std::string>& gradient_names) {
  std::vector<std::string> names;
  for (const std::string& name : gradient_names) {
    if (name == kMemoryPart) {
      names.emplace_back(job::kGpuMemoryBytes);
      names.emplace_back(job::kGpuMemoryFree);
    } else {
      names.push_back(counterpart_of(name));
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<MetricSeries> as_gradient_has_it(const std::vector<std::string>& gradient_names,
                                             const std::vector<MetricSeries>& series) {
  std::vector<MetricSeries> result;
  for (const std::string& name : gradient_names) {
    auto some =
        name == kMemoryPart ? memory_part(series) : one_a_task(series, counterpart_of(name));
    for (MetricSeries& one : some) {
      one.metric = name;
      result.push_back(std::move(one));
    }
  }
  return result;
}

std::string metrics_json(const job::Job& job, const std::vector<MetricSeries>& series) {
  nlohmann::json json = nlohmann::json::object();
  for (const MetricSeries& one : series) {
    nlohmann::json points = nlohmann::json::array();
    for (const MetricPoint& point : one.points) {
      points.push_back(
          {{"time_stamp", seconds_of(point.time)}, {"value", value_text(point.value)}});
    }
    json[one.metric][pod_of(job, one.task)] = std::move(points);
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

AsciiTable metrics_table(const job::Job& job, const std::vector<std::string>& gradient_names,
                         const std::vector<MetricSeries>& series) {
  std::map<std::string, std::map<std::string, std::string>> rows;  // by pod, then by metric
  for (const MetricSeries& one : series) {
    if (one.points.empty()) continue;
    rows[pod_of(job, one.task)][one.metric] = value_text(one.points.back().value);
  }
  AsciiTable table;
  std::vector<AsciiTable::Cell> titles{"Pod"};
  titles.insert(titles.end(), gradient_names.begin(), gradient_names.end());
  table.add(titles);
  for (auto& [pod, values] : rows) {
    std::vector<AsciiTable::Cell> row{pod};
    for (const std::string& name : gradient_names) row.emplace_back(values[name]);
    table.add(row);
  }
  return table;
}

}  // namespace muster::dialects::gradient
