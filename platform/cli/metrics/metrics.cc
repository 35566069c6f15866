// metrics: the metrics of a job as tables, charts, or values for other programs.

#include "cli/metrics/metrics.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "api/job_query.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/command/command.h"
#include "cli/common/format.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/connection/connection.h"
#include "cli/metrics/chart.h"
#include "record/input.h"

namespace muster::cli::metrics {

namespace {

const char* variable_or_null(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? nullptr : found->second.c_str();
}

bool terminal_shows_unicode(const Environment& environment) {
  return shows_unicode(variable_or_null(environment, "LC_ALL"),
                       variable_or_null(environment, "LC_CTYPE"),
                       variable_or_null(environment, "LANG"));
}

/// The metrics named after the job and by --metric, without duplicates.
std::vector<std::string> asked_metrics(Reading& in) {
  std::vector<std::string> metrics;
  const auto add = [&](const std::string& metric, const std::string& where) {
    if (!job::is_metric_name(metric)) {
      in.reader.fault(where, "'" + metric + "' is not a valid metric name");
    } else if (std::find(metrics.begin(), metrics.end(), metric) == metrics.end()) {
      metrics.push_back(metric);
    }
  };
  const std::vector<std::string>& words = in.arguments.names;
  for (size_t i = 1; i < words.size(); ++i) add(words[i], "METRIC");
  for (const std::string& metric : in.reader.texts("--metric")) add(metric, "--metric");
  return metrics;
}

job::MetricQuery read_query(Reading& in) {
  job::MetricQuery query{.metrics = asked_metrics(in)};
  if (in.reader.has("--task")) query.task = in.reader.text("--task");
  if (in.reader.has("--rank")) query.rank = in.reader.number_between("--rank", 0, 0);
  query.since = in.reader.moment("--since", in.caller.now);
  query.interval = in.reader.duration("--interval", std::chrono::milliseconds(0));
  return query;
}

void check_combination(Reading& in, const MetricsCommand& command) {
  const bool is_picture = command.format == MetricsCommand::Format::kPicture;
  if (command.svg && command.query.metrics.empty()) {
    in.reader.fault("--svg", "needs metrics: muster metrics NAME METRIC --svg FILE");
  }
  if (command.svg && !is_picture) in.reader.fault("--svg", "cannot be used with --output");
  if (command.svg && command.follow) {
    in.reader.fault("--svg", "cannot be used with --follow, which draws on the terminal");
  }
  if (command.follow && command.format == MetricsCommand::Format::kJson) {
    in.reader.fault("--output", "json cannot be used with --follow; use csv");
  }
}

Call read_metrics(Reading& in) {
  MetricsCommand command{
      .name = in.name("job"), .project = in.project_of_job(), .query = read_query(in)};
  if (in.reader.has("--svg")) command.svg = in.reader.text("--svg");
  command.follow = in.reader.has("--follow");
  command.unicode = terminal_shows_unicode(in.caller.environment);
  const std::string format = in.reader.choice("--output", {"table", "json", "csv"});
  if (format == "json") command.format = MetricsCommand::Format::kJson;
  if (format == "csv") command.format = MetricsCommand::Format::kCsv;
  check_combination(in, command);
  return command;
}

}  // namespace

Command metrics_command() {
  constexpr size_t kMostMetrics = 32;
  return {
      .name = "metrics",
      .help =
          "show what a job's tasks use and what its program reports, as a table, chart or values",
      .read = read_metrics,
      .positionals = {.name = "NAME [METRIC...]",
                      .least = 1,
                      .most = 1 + kMostMetrics,
                      .offer = Offer::kJobs},
      .flags = Flags{{.name = "--metric",
                      .value = "METRIC",
                      .help = "draw this metric over time; the same as NAME METRIC",
                      .repeats = true},
                     {.name = "--task", .value = "TASK", .help = "only this task"},
                     {.name = "--rank", .value = "N", .help = "only this rank"},
                     {.name = "--since",
                      .value = "TIME",
                      .help = "only entries after this time: 10m (ago), or 2026-01-31T12:00:00Z"},
                     {.name = "--interval",
                      .value = "TIME",
                      .help = "one value (the mean) for each interval: 30s, 1m"},
                     {.name = "--follow",
                      .letter = "-f",
                      .help = "redraw with new values until the job ends; q quits"},
                     {.name = "--svg",
                      .value = "FILE",
                      .help = "write the chart to this file; - writes to standard output",
                      .offer = Offer::kFiles}} +
               job_project_flag() + output_flag({"table", "json", "csv"}),
      .example = "muster metrics dist loss accuracy --follow"};
}

namespace {

using base::Error;
using base::ErrorCode;
using job::MetricSeries;
using Series = std::vector<MetricSeries>;

constexpr std::chrono::seconds kLookAgain{1};

/// The content of a chart.
struct Measured {
  job::Job job;
  Series series;
};

Result<Series> read_series(Connection& connection, const std::string& name,
                           const job::MetricQuery& query) {
  return connection.call([&](api::Client& client) { return client.metrics(name, query); });
}

/// Reads the job before the values: values that arrive in between are included, and an ended job is
/// reported only with all of its values.
Result<Measured> read_measured(Connection& connection, const MetricsCommand& command) {
  Measured measured;
  MUSTER_TRY(measured.job,
             connection.call([&](api::Client& client) { return client.get(command.name); }));
  job::MetricQuery query = command.query;
  query.last = query.metrics.empty();
  MUSTER_TRY(measured.series, read_series(connection, measured.job.id, query));
  return measured;
}

std::vector<std::string> metrics_in(const Series& series) {
  std::vector<std::string> names;
  for (const MetricSeries& one : series) names.push_back(one.metric);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Error no_such_metric(const std::string& job, const std::string& metric,
                     const std::vector<std::string>& known) {
  return {.code = ErrorCode::kNotFound,
          .what = "job '" + job + "' has no metric '" + metric + "'" +
                  record::did_you_mean(metric, known),
          .advice = known.empty() ? "it has no metrics yet" : "it has " + base::joined(known)};
}

/// An unknown name may be a typo, but a running job may still report the metric later.
Result<void> check_metrics(Connection& connection, const MetricsCommand& command,
                           const Measured& measured) {
  const bool may_come = command.follow && !job::is_final(measured.job.phase);
  if (may_come) return {};
  const std::vector<std::string> there = metrics_in(measured.series);
  for (const std::string& metric : command.query.metrics) {
    if (std::binary_search(there.begin(), there.end(), metric)) continue;
    MUSTER_TRY(const Series all, read_series(connection, measured.job.id,
                                             {.task = command.query.task, .last = true}));
    const std::vector<std::string> known = metrics_in(all);
    // The metric exists, but has no values in the requested time: the chart is empty.
    if (std::binary_search(known.begin(), known.end(), metric)) continue;
    return no_such_metric(measured.job.spec.name, metric, known);
  }
  return {};
}

/// Makes the labels from the server safe for a terminal.
std::vector<Chart> safe_charts(const Series& series) {
  std::vector<Chart> charts = charts_of(series);
  for (Chart& chart : charts) {
    chart.title = safe_lines(chart.title);
    for (ChartSeries& one : chart.series) one.label = safe_lines(one.label);
  }
  return charts;
}

/// The series in the order in which the metrics were requested.
Series in_asked_order(Series series, const std::vector<std::string>& metrics) {
  const auto place = [&](const MetricSeries& one) {
    return std::find(metrics.begin(), metrics.end(), one.metric) - metrics.begin();
  };
  std::stable_sort(series.begin(), series.end(),
                   [&](const auto& left, const auto& right) { return place(left) < place(right); });
  return series;
}

std::optional<base::Time> begin_of(const MetricsCommand& command, const job::Job& job) {
  return command.query.since ? command.query.since : job.started;
}

ChartLook look_of(const MetricsCommand& command, ScreenSize size, size_t charts) {
  constexpr size_t kBesideThePlot = 4;  // title, axis, labels, blank line
  constexpr size_t kLeast = 6;
  constexpr size_t kMost = 14;
  const size_t rows = size.rows / std::max<size_t>(charts, 1);
  return {.columns = size.columns,
          .rows = std::clamp(rows - std::min(rows, kBesideThePlot + 2), kLeast, kMost),
          .unicode = command.unicode,
          .colour = terminal_of(STDOUT_FILENO).colour};
}

std::string picture(const MetricsCommand& command, const Measured& measured, ScreenSize size) {
  const base::Time now = base::SystemClock().now();
  if (command.query.metrics.empty()) {
    return safe_lines(metrics_page(measured.job, measured.series, now));
  }
  const std::vector<Chart> charts =
      safe_charts(in_asked_order(measured.series, command.query.metrics));
  const std::string head = safe_lines(job_headline(measured.job, now));
  if (charts.empty()) return head + "\nno value yet\n";
  return head + "\n" +
         chart_text(charts, begin_of(command, measured.job), look_of(command, size, charts.size()));
}

Result<void> write_svg(const MetricsCommand& command, const Measured& measured) {
  const std::vector<Chart> charts =
      charts_of(in_asked_order(measured.series, command.query.metrics));
  const std::string text =
      chart_svg(charts, begin_of(command, measured.job), measured.job.spec.name);
  if (*command.svg == "-") return base::write_all(STDOUT_FILENO, text);
  constexpr mode_t kForEverybody = 0644;
  return base::write_file(*command.svg, text, kForEverybody);
}

Result<void> show_once(const MetricsCommand& command, const Measured& measured) {
  if (command.svg) return write_svg(command, measured);
  switch (command.format) {
    case MetricsCommand::Format::kJson:
      return show(api::metrics_to_json(measured.series) + "\n");
    case MetricsCommand::Format::kCsv:
      return show(std::string(kMetricsCsvHead) + metrics_csv(measured.series));
    case MetricsCommand::Format::kPicture:
      break;
  }
  // Bypasses show(): the colours are intended, and the labels are safe already.
  return base::write_all(STDOUT_FILENO, picture(command, measured, screen_size()));
}

/// Redraws the chart in place; leaves the last chart on the terminal when the job has ended or the user
/// quits.
Result<int> follow_picture(Connection& connection, const MetricsCommand& command,
                           Measured measured) {
  {
    LiveScreen screen;
    connection.set_wake(ended_by_signals(screen.signals_fd()));
    while (true) {
      if (!screen.show(picture(command, measured, screen.size()))) return kExitBrokenPipe;
      if (job::is_final(measured.job.phase) || !screen.wait(kLookAgain)) break;
      auto read = read_measured(connection, command);
      if (read) {
        connection.is_well();
        measured = *std::move(read);
        continue;
      }
      MUSTER_TRY(const bool is_back, connection.come_back_after(read.error(), screen.signals_fd()));
      if (!is_back || screen.user_quits()) break;
    }
  }
  MUSTER_CHECK(show_once(command, measured));
  return kExitDone;
}

/// Prints each value once, as it arrives.
class CsvFollower {
 public:
  CsvFollower(Connection& connection, const MetricsCommand& command)
      : connection_(connection), name_(command.name), values_(command.query) {
    connection.set_wake(ended_by_signals(interrupts_.fd()));
  }

  Result<int> run() {
    if (!show(kMetricsCsvHead)) return kExitBrokenPipe;
    while (true) {
      const Result<Measured> measured = read();
      if (!measured) {
        MUSTER_TRY(const bool is_back,
                   connection_.come_back_after(measured.error(), interrupts_.fd()));
        if (!is_back) return kExitInterrupted;
        continue;
      }
      connection_.is_well();
      const bool has_ended = job::is_final(measured->job.phase);
      if (!show(values_.take(measured->series, has_ended))) return kExitBrokenPipe;
      if (has_ended) return kExitDone;
      if (interrupted()) return kExitInterrupted;
    }
  }

 private:
  Result<Measured> read() {
    Measured measured;
    MUSTER_TRY(measured.job,
               connection_.call([&](api::Client& client) { return client.get(name_); }));
    MUSTER_TRY(measured.series, read_series(connection_, measured.job.id, values_.query()));
    return measured;
  }

  bool interrupted() {
    pollfd entry{.fd = interrupts_.fd(), .events = POLLIN, .revents = 0};
    ::poll(&entry, 1, static_cast<int>(std::chrono::milliseconds(kLookAgain).count()));
    return interrupts_.take();
  }

  Connection& connection_;
  std::string name_;
  NewValues values_;
  Interrupts interrupts_;
};

Error needs_terminal() {
  return {.code = ErrorCode::kInvalid,
          .what = "--follow needs a terminal, and standard output is not a terminal",
          .advice = "use --output csv, which prints each new value"};
}

}  // namespace

Result<int> execute(const MetricsCommand& command, const Hooks& hooks) {
  const bool is_csv = command.format == MetricsCommand::Format::kCsv;
  if (command.follow && !is_csv && !terminal_of(STDOUT_FILENO).is_terminal) {
    return needs_terminal();
  }
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  MUSTER_TRY(const Measured measured, read_measured(connection, command));
  MUSTER_CHECK(check_metrics(connection, command, measured));
  if (command.follow) {
    return is_csv ? CsvFollower(connection, command).run()
                  : follow_picture(connection, command, measured);
  }
  MUSTER_CHECK(show_once(command, measured));
  return kExitDone;
}

namespace {

using job::MetricPoint;

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

/// The names of the sampled tasks, in the order of their first samples.
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
  if (newest.empty()) text += "\nit has no metrics yet\n";
  return text;
}

std::string metrics_csv_line(const MetricSeries& series, const MetricPoint& point) {
  return base::to_rfc3339(point.time, 9) + "," + series.metric + "," + series.task + "," +
         (series.rank ? std::to_string(*series.rank) : "") + "," + number_text(point.value) + "\n";
}

namespace {

/// Values of a node whose clock is behind may arrive so much later than those of other nodes.
constexpr std::chrono::milliseconds kLate{10'000};

}  // namespace

NewValues::NewValues(job::MetricQuery query) : query_(std::move(query)), first_(query_.since) {
  query_.last = false;
}

std::string NewValues::take(const std::vector<MetricSeries>& all, bool has_ended) {
  // A series without a new value in so many answers has probably ended.
  constexpr int kMostIdle = 60;
  base::Time newest{};
  for (const MetricSeries& series : all) {
    if (!series.points.empty()) newest = std::max(newest, series.points.back().time);
  }
  // Decided by the time, so that query().since never passes a value that is still held back.
  const auto may_change = [&](const MetricPoint& last) {
    return query_.interval.count() > 0 && !has_ended &&
           newest < last.time + query_.interval + kLate;
  };
  std::string text;
  for (const MetricSeries& series : all) {
    Shown& shown = shown_[{series.metric, series.task, series.rank}];
    ++shown.idle;
    auto end = series.points.end();
    if (end != series.points.begin() && may_change(*std::prev(end))) --end;
    for (auto point = series.points.begin(); point != end; ++point) {
      if (point->time <= shown.until) continue;
      text += metrics_csv_line(series, *point);
      shown = {.until = point->time};
    }
  }
  std::optional<base::Time> oldest;
  for (const auto& [name, shown] : shown_) {
    const bool counts = shown.until != base::Time() && shown.idle < kMostIdle;
    if (counts && (!oldest || shown.until < *oldest)) oldest = shown.until;
  }
  if (oldest) query_.since = begin_before(*oldest);
  return text;
}

base::Time NewValues::begin_before(base::Time oldest) const {
  const std::chrono::milliseconds step = query_.interval;
  // Whole intervals: an answer that began within an interval would have the mean of a part of it.
  const auto margin = step.count() > 0 ? step * ((kLate + step).count() / step.count()) : kLate;
  return first_ ? std::max(*first_, oldest - margin) : oldest - margin;
}

std::string metrics_csv(const std::vector<MetricSeries>& series) {
  std::string text;
  for (const MetricSeries& one : series) {
    for (const MetricPoint& point : one.points) text += metrics_csv_line(one, point);
  }
  return text;
}

}  // namespace muster::cli::metrics
