#include "cli/metrics/metric_view.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/text.h"
#include "cli/common/amount_words.h"
#include "cli/common/metric_words.h"
#include "cli/common/table.h"

namespace muster::cli::metrics {

namespace {

using job::MetricPoint;
using job::MetricSeries;

struct UseColumn {
  std::string_view title;
  std::string_view metric;
};

constexpr std::array<UseColumn, 9> kUseColumns{{{"CPU", job::kCpuPercent},
                                                {"MEMORY", job::kMemoryBytes},
                                                {"RECEIVED", job::kNetworkReceived},
                                                {"SENT", job::kNetworkSent},
                                                {"GPU", job::kGpuPercent},
                                                {"GPU MEMORY", job::kGpuMemoryBytes},
                                                {"GPU FREE", job::kGpuMemoryFree},
                                                {"POWER", job::kGpuPowerWatts},
                                                {"HOTTEST", job::kGpuCelsius}}};

const MetricSeries* find_sampled(const std::vector<MetricSeries>& newest, std::string_view metric,
                                 const std::string& task) {
  const auto found = std::find_if(newest.begin(), newest.end(), [&](const MetricSeries& series) {
    return series.metric == metric && series.task == task && !series.points.empty();
  });
  return found == newest.end() ? nullptr : &*found;
}

bool is_shown(const MetricSeries& series) {
  return job::is_sampled(series.metric) && !series.points.empty();
}

/// The names of the tasks of which something was sampled, as they first come.
std::vector<std::string> sampled_tasks(const std::vector<MetricSeries>& newest) {
  std::vector<std::string> tasks;
  for (const MetricSeries& series : newest) {
    if (!is_shown(series)) continue;
    if (std::find(tasks.begin(), tasks.end(), series.task) == tasks.end()) {
      tasks.push_back(series.task);
    }
  }
  return tasks;
}

std::vector<UseColumn> columns_with_values(const std::vector<MetricSeries>& newest) {
  std::vector<UseColumn> columns;
  for (const UseColumn& column : kUseColumns) {
    const bool is_there = std::any_of(newest.begin(), newest.end(), [&](const MetricSeries& one) {
      return one.metric == column.metric && !one.points.empty();
    });
    if (is_there) columns.push_back(column);
  }
  return columns;
}

std::string number_text(double value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return {digits.data(), end};
}

}  // namespace

std::string use_table(const std::vector<MetricSeries>& newest, std::string_view indent) {
  const std::vector<UseColumn> columns = columns_with_values(newest);
  if (columns.empty()) return "";
  std::vector<Column> titles{{"TASK"}};
  for (const UseColumn& column : columns) titles.push_back({std::string(column.title), true});
  Table table(std::move(titles));
  for (const std::string& task : sampled_tasks(newest)) {
    std::vector<std::string> row{task};
    for (const UseColumn& column : columns) {
      const MetricSeries* const series = find_sampled(newest, column.metric, task);
      row.push_back(series == nullptr
                        ? "-"
                        : value_words(series->points.back().value, unit_of(column.metric)));
    }
    table.add(std::move(row));
  }
  return table.to_string(indent);
}

std::vector<MetricSeries> of_living_tasks(const job::Job& job, std::vector<MetricSeries> series) {
  if (job::is_final(job.phase)) return series;
  for (const job::Task& task : job.tasks) {
    if (task.phase != job::TaskPhase::kEnded) continue;
    std::erase_if(series, [&](const MetricSeries& one) { return one.task == task.name; });
  }
  return series;
}

std::string reported_table(const std::vector<MetricSeries>& newest, base::Time now) {
  std::vector<const MetricSeries*> reported;
  for (const MetricSeries& series : newest) {
    if (!job::is_sampled(series.metric) && !series.points.empty()) reported.push_back(&series);
  }
  if (reported.empty()) return "";
  const bool has_ranks = std::any_of(reported.begin(), reported.end(),
                                     [](const MetricSeries* series) { return !!series->rank; });
  std::vector<Column> titles{{"METRIC"}, {"TASK"}, {"VALUE", true}, {"AGO", true}};
  if (has_ranks) titles.insert(titles.begin() + 2, {"RANK", true});
  Table table(std::move(titles));
  for (const MetricSeries* series : reported) {
    const MetricPoint& point = series->points.back();
    std::vector<std::string> row{series->metric, series->task,
                                 value_words(point.value, unit_of(series->metric)),
                                 age(point.time, now)};
    if (has_ranks) {
      row.insert(row.begin() + 2, series->rank ? std::to_string(*series->rank) : "-");
    }
    table.add(std::move(row));
  }
  return table.to_string();
}

std::string job_headline(const job::Job& job, base::Time now) {
  std::string text = job.spec.name + "  " + std::string(job::to_string(job.phase));
  if (job.progress) text += "  " + progress_line(*job.progress, now);
  return text + "\n";
}

std::string metrics_page(const job::Job& job, const std::vector<MetricSeries>& newest,
                         base::Time now) {
  std::string text = job_headline(job, now);
  for (const std::string& table :
       {use_table(of_living_tasks(job, newest)), reported_table(newest, now)}) {
    if (!table.empty()) text += "\n" + table;
  }
  if (newest.empty()) text += "\nnothing was measured of it yet\n";
  return text;
}

std::string metrics_csv_line(const MetricSeries& series, const MetricPoint& point) {
  return base::to_rfc3339(point.time, 9) + "," + series.metric + "," + series.task + "," +
         (series.rank ? std::to_string(*series.rank) : "") + "," + number_text(point.value) + "\n";
}

std::string metrics_csv(const std::vector<MetricSeries>& series) {
  std::string text;
  for (const MetricSeries& one : series) {
    for (const MetricPoint& point : one.points) text += metrics_csv_line(one, point);
  }
  return text;
}

}  // namespace muster::cli::metrics
