// What is measured of a job while it runs: what its tasks use of their machines, and what its
// program says of itself.
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

// What Muster samples of each task. Any other name is the program's own.
inline constexpr std::string_view kCpuPercent = "cpu_percent";  ///< 100: one CPU
inline constexpr std::string_view kMemoryBytes = "memory_bytes";
inline constexpr std::string_view kNetworkReceived = "network_received_bytes_per_second";
inline constexpr std::string_view kNetworkSent = "network_sent_bytes_per_second";
// Of the task's GPUs together, but for the temperature: of the hottest.
inline constexpr std::string_view kGpuPercent = "gpu_percent";  ///< 100: one GPU, wholly busy
inline constexpr std::string_view kGpuMemoryBytes = "gpu_memory_bytes";
inline constexpr std::string_view kGpuMemoryFree = "gpu_memory_free_bytes";
inline constexpr std::string_view kGpuPowerWatts = "gpu_power_watts";
inline constexpr std::string_view kGpuCelsius = "gpu_temperature_celsius";

// How a program tells how far it is: one of these pairs, or a part of 1.
inline constexpr std::string_view kEpoch = "epoch";
inline constexpr std::string_view kEpochs = "epochs";
inline constexpr std::string_view kStep = "step";
inline constexpr std::string_view kSteps = "steps";
inline constexpr std::string_view kProgress = "progress";

inline constexpr size_t kMaxMetricName = 64;

/// A letter or '_', then letters, digits and "_./-", at most kMaxMetricName.
bool is_metric_name(std::string_view name);

/// Whether Muster samples it, rather than the program reporting it.
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

/// Which values are asked for. Of more than kMostPoints in a series, neighbours are put together.
struct MetricQuery {
  std::vector<std::string> metrics;  ///< empty: all
  std::optional<std::string> task;
  std::optional<int> rank;
  std::optional<base::Time> since;
  std::optional<base::Time> until;
  std::chrono::milliseconds interval{0};  ///< one value for each, their mean; 0: as they came
  bool last = false;                      ///< only the newest of each series
  bool operator==(const MetricQuery&) const = default;
};

inline constexpr size_t kMostPoints = 2000;

/// How far a job's program says it is.
struct Progress {
  std::string unit;  ///< "epoch", "step", or "" where it is a part of 1
  double done = 0;
  double total = 0;                ///< greater than 0
  std::optional<base::Time> ends;  ///< at the pace it has gone so far

  bool operator==(const Progress&) const = default;
};

// The fields of metrics, one row each (record/table.h), as the API tells them.

const record::Table& table_of(const MetricPoint*);
const record::Table& table_of(const MetricSeries*);

}  // namespace muster::job
