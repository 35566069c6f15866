// `gradient experiments metrics`: its flags, and metrics with Gradient's names.
//
// Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/command/arguments.h"
#include "dialects/gradient/ascii_table.h"
#include "job/job.h"
#include "job/metric.h"

namespace muster::dialects::gradient {

struct MetricQuery {
  std::vector<std::string> metrics;
  std::chrono::milliseconds interval{0};
  std::optional<base::Time> start;  ///< nothing: the start of the experiment
  std::optional<base::Time> end;

  bool operator==(const MetricQuery&) const = default;
};

/// Reads --metric, --interval, --start and --end; reports faults to `reader`. `known`: the allowed
/// metrics; empty: any.
MetricQuery read_metric_query(cli::FlagReader& reader, const std::vector<std::string>& known);

/// "2026-01-31", "2026-01-31T12:00:00" or "2026-01-31 12:00:00", in UTC.
base::Result<base::Time> parse_metric_time(std::string_view text);

// Metrics with Gradient's names of metrics and pods, as Gradient's JSON:
//
//   {"cpuPercentage": {"mljob-ea2lfbbpdyzsq-0-worker":
//                          [{"time_stamp": 1588155670, "value": "93"}]}}
//
// Pure.

/// "mljob-ID-0-worker": Gradient's pod name of a task. Workers and parameter servers are numbered from
/// 0; the chief of a TensorFlow cluster and the task of a single-node experiment count as workers; the
/// launcher of an MPI experiment is the master.
std::string pod_of(const job::Job& job, std::string_view task);

/// Muster's metrics for these metrics of Gradient. Other names are metrics of the program.
std::vector<std::string> metrics_behind(const std::vector<std::string>& gradient_names);

/// `series` with Gradient's names; incomplete ones are omitted. If a pod has several ranks, the lowest
/// rank's series is used.
std::vector<job::MetricSeries> as_gradient_has_it(const std::vector<std::string>& gradient_names,
                                                  const std::vector<job::MetricSeries>& series);

/// Indented JSON with sorted keys, values as text and times in seconds; "{}" if there are none.
std::string metrics_json(const job::Job& job, const std::vector<job::MetricSeries>& series);

/// A row for each pod with the newest value of each metric; blank if it has none.
AsciiTable metrics_table(const job::Job& job, const std::vector<std::string>& gradient_names,
                         const std::vector<job::MetricSeries>& series);

}  // namespace muster::dialects::gradient
