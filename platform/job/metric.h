// Metrics of a running job: the resources that its tasks use, and the values that its program
// reports.
//
// Plain values; pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "record/table.h"

namespace muster::job {

// The metrics that Muster samples for each task. Every other name is reported by the program.
inline constexpr std::string_view kCpuPercent = "cpu_percent";  ///< 100: one CPU
inline constexpr std::string_view kMemoryBytes = "memory_bytes";
inline constexpr std::string_view kNetworkReceived = "network_received_bytes_per_second";
inline constexpr std::string_view kNetworkSent = "network_sent_bytes_per_second";
// For all GPUs of the task together; the temperature is that of the hottest GPU.
inline constexpr std::string_view kGpuPercent = "gpu_percent";  ///< 100: one fully used GPU
inline constexpr std::string_view kGpuMemoryBytes = "gpu_memory_bytes";
inline constexpr std::string_view kGpuMemoryFree = "gpu_memory_free_bytes";
inline constexpr std::string_view kGpuPowerWatts = "gpu_power_watts";
inline constexpr std::string_view kGpuCelsius = "gpu_temperature_celsius";

// The metrics with which a program reports its progress: one of these pairs, or a fraction of 1.
inline constexpr std::string_view kEpoch = "epoch";
inline constexpr std::string_view kEpochs = "epochs";
inline constexpr std::string_view kStep = "step";
inline constexpr std::string_view kSteps = "steps";
inline constexpr std::string_view kProgress = "progress";

inline constexpr size_t kMaxMetricName = 64;

/// A letter or '_', then letters, digits and "_./-", at most kMaxMetricName.
bool is_metric_name(std::string_view name);

/// Whether Muster samples it; otherwise the program reports it.
bool is_sampled(std::string_view name);

/// One value at one time.
struct MetricPoint {
  base::Time time;
  double value = 0;

  bool operator==(const MetricPoint&) const = default;
};

/// The values of one metric, of one task or of one rank in it, oldest first.
struct MetricSeries {
  std::string metric;
  std::string task;
  std::optional<int> rank;
  std::vector<MetricPoint> points;

  bool operator==(const MetricSeries&) const = default;
};

/// Selects values. If a series has more than kMostPoints, neighbouring points are merged, unless
/// `unmerged` is set.
struct MetricQuery {
  std::vector<std::string> metrics;  ///< empty: all
  std::optional<std::string> task;
  std::optional<int> rank;
  std::optional<base::Time> since;
  std::optional<base::Time> until;
  std::chrono::milliseconds interval{0};  ///< one mean value for each interval; 0: unchanged
  bool last = false;                      ///< only the newest of each series
  bool unmerged = false;                  ///< within the server only; callers cannot set it
  bool operator==(const MetricQuery&) const = default;
};

inline constexpr size_t kMostPoints = 2000;

/// The progress that a job's program reports.
struct Progress {
  std::string unit;  ///< "epoch", "step", or "" for a fraction of 1
  double done = 0;
  double total = 0;                ///< greater than 0
  std::optional<base::Time> ends;  ///< estimated from the average pace so far

  bool operator==(const Progress&) const = default;
};

// The fields of metrics for the API, one row each (record/table.h).

const record::Table& table_of(const MetricPoint*);
const record::Table& table_of(const MetricSeries*);

}  // namespace muster::job
