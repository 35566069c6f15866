// muster metrics: the metrics of a job.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/command/call.h"
#include "cli/command/command.h"
#include "job/job.h"
#include "job/metric.h"

namespace muster::cli::metrics {

struct MetricsCommand {
  enum class Format { kPicture, kJson, kCsv };

  std::string name;
  std::string project = {};
  job::MetricQuery query;          ///< without a metric: the newest value of each metric
  std::optional<std::string> svg;  ///< the file for the chart
  bool follow = false;
  bool unicode = true;  ///< the caller's terminal shows Unicode
  Format format = Format::kPicture;
};

Result<int> execute(const MetricsCommand& command, const Hooks& hooks);

Command metrics_command();

// Metrics as text: a table of what the tasks use, a table of what the program reports, and CSV. Pure.

/// TASK CPU MEMORY RECEIVED SENT GPU ..., a row for each task, only columns with values. From the
/// newest values; empty if there are none.
std::string use_table(const std::vector<job::MetricSeries>& newest, std::string_view indent = "");

/// Removes the series of the ended tasks of a running job: they no longer use resources.
std::vector<job::MetricSeries> of_living_tasks(const job::Job& job,
                                               std::vector<job::MetricSeries> series);

/// TASK RANK METRIC VALUE AGO of what the program reports; RANK only if a value has one. Empty if
/// the program reports nothing.
std::string reported_table(const std::vector<job::MetricSeries>& newest, base::Time now);

/// "dist  Running  epoch 3/10 30%, 12m left", as one line.
std::string job_headline(const job::Job& job, base::Time now);

/// The progress of the job, and both tables.
std::string metrics_page(const job::Job& job, const std::vector<job::MetricSeries>& newest,
                         base::Time now);

inline constexpr std::string_view kMetricsCsvHead = "time,metric,task,rank,value\n";
/// CSV lines, one for each value, series after series.
std::string metrics_csv_line(const job::MetricSeries& series, const job::MetricPoint& point);
std::string metrics_csv(const std::vector<job::MetricSeries>& series);

}  // namespace muster::cli::metrics
