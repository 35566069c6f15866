// muster metrics: the metrics of a job.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
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

/// The values of a job that `metrics --follow --output csv` has not printed yet. Pure.
class NewValues {
 public:
  explicit NewValues(job::MetricQuery query);

  /// What to ask the server for next. It begins shortly before the values that were printed last,
  /// because the server merges the values of a series that has more than job::kMostPoints. The values
  /// of a new series, and of a node whose clock is behind, may arrive late.
  const job::MetricQuery& query() const { return query_; }

  /// The CSV lines of the new values in an answer to query(). With an interval, the last one of each
  /// series is printed when the next one has begun, when values measured 10 s after its end have
  /// arrived, or when the job has ended.
  std::string take(const std::vector<job::MetricSeries>& all, bool has_ended);

 private:
  struct Shown {
    base::Time until;  ///< of the newest printed value
    int idle = 0;      ///< answers since then
  };

  base::Time begin_before(base::Time oldest) const;

  job::MetricQuery query_;
  std::optional<base::Time> first_;  ///< the user's --since
  std::map<std::tuple<std::string, std::string, std::optional<int>>, Shown> shown_;
};

}  // namespace muster::cli::metrics
