// What `gradient experiments metrics` is asked for.
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
  std::optional<base::Time> start;  ///< nothing: since the experiment has started
  std::optional<base::Time> end;

  bool operator==(const MetricQuery&) const = default;
};

/// Reads --metric, --interval, --start and --end. Every fault goes into `reader`. `known`: the
/// metrics there are; empty: any name may be one.
MetricQuery read_metric_query(cli::FlagReader& reader, const std::vector<std::string>& known);

/// "2026-01-31", "2026-01-31T12:00:00" or "2026-01-31 12:00:00", in UTC.
base::Result<base::Time> parse_metric_time(std::string_view text);

// What was measured of a job as Gradient has it: its names of metrics, its names of pods, its JSON.
//
//   {"cpuPercentage": {"mljob-ea2lfbbpdyzsq-0-worker":
//                          [{"time_stamp": 1588155670, "value": "93"}]}}
//
// Pure.

/// "mljob-ID-0-worker": a task by the name of Gradient's pods. Workers and parameter servers are
/// numbered from 0; the chief of a TensorFlow cluster is its first worker, and so is the task of an
/// experiment of one machine; what leads an MPI experiment is the master.
std::string pod_of(const job::Job& job, std::string_view task);

/// What has to be asked for to know these of Gradient's metrics: any other name is a program's own.
std::vector<std::string> metrics_behind(const std::vector<std::string>& gradient_names);

/// `series` by Gradient's names; what is only half there is left out. Of several ranks in a pod the
/// lowest speaks for it.
std::vector<job::MetricSeries> as_gradient_has_it(const std::vector<std::string>& gradient_names,
                                                  const std::vector<job::MetricSeries>& series);

/// Indented, keys sorted, values as text and times in seconds; "{}" where there is nothing.
std::string metrics_json(const job::Job& job, const std::vector<job::MetricSeries>& series);

/// Pod, then a column for each of the metrics: the newest value of each, blank where there is none.
AsciiTable metrics_table(const job::Job& job, const std::vector<std::string>& gradient_names,
                         const std::vector<job::MetricSeries>& series);

}  // namespace muster::dialects::gradient
