#include "dialects/gradient/metrics.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/files.h"
#include "base/json_text.h"
#include "base/units.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "dialects/gradient/command_tree.h"
#include "dialects/gradient/commands.h"
#include "dialects/gradient/views.h"
#include "record/input.h"

namespace muster::dialects::gradient {

namespace {

using base::Time;

/// 'd' stands for a digit, '?' for a blank or a T.
bool has_shape(std::string_view text, std::string_view shape) {
  return std::equal(text.begin(), text.end(), shape.begin(), shape.end(),
                    [](char letter, char pattern) {
                      if (pattern == 'd') return letter >= '0' && letter <= '9';
                      if (pattern == '?') return letter == ' ' || letter == 'T';
                      return letter == pattern;
                    });
}

/// REQUIRES: the characters are digits.
int number_at(std::string_view text, size_t begin, size_t length) {
  return base::number_of<int>(text.substr(begin, length)).value_or(0);
}

// A Time counts nanoseconds: it has room for these years.
constexpr int kFirstYear = 1678;
constexpr int kLastYear = 2261;

/// Nothing also for other years.
std::optional<Time> parse_time(std::string_view text) {
  const bool has_time = has_shape(text, "dddd-dd-dd?dd:dd:dd");
  if (!has_time && !has_shape(text, "dddd-dd-dd")) return std::nullopt;
  const int year = number_at(text, 0, 4);
  if (year < kFirstYear || year > kLastYear) return std::nullopt;
  const std::chrono::year_month_day date{
      std::chrono::year(year), std::chrono::month(static_cast<unsigned>(number_at(text, 5, 2))),
      std::chrono::day(static_cast<unsigned>(number_at(text, 8, 2)))};
  if (!date.ok()) return std::nullopt;
  const Time day = std::chrono::sys_days(date);
  if (!has_time) return day;
  const int hour = number_at(text, 11, 2);
  const int minute = number_at(text, 14, 2);
  const int second = number_at(text, 17, 2);
  if (hour > 23 || minute > 59 || second > 59) return std::nullopt;
  return day + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second);
}

std::optional<Time> read_moment(cli::FlagReader& reader, const std::string& flag) {
  if (!reader.has(flag)) return std::nullopt;
  const auto time = parse_metric_time(reader.text(flag));
  if (time) return *time;
  reader.fault(flag, time.error().what);
  return std::nullopt;
}

void check_metrics(cli::FlagReader& reader, const std::vector<std::string>& metrics,
                   const std::vector<std::string>& known) {
  for (const std::string& metric : metrics) {
    if (known.empty() || std::find(known.begin(), known.end(), metric) != known.end()) continue;
    reader.fault("--metric", record::not_a_choice(metric, known));
  }
}

}  // namespace

base::Result<Time> parse_metric_time(std::string_view text) {
  if (const auto time = parse_time(text)) return *time;
  return base::Error{
      .code = base::ErrorCode::kInvalid,
      .what = "'" + std::string(text) +
              "' is not a time; give 2026-01-31, 2026-01-31T12:00:00 or '2026-01-31 12:00:00', "
              "in the years 1678 to 2261",
      .advice = {},
      .faults = {}};
}

MetricQuery read_metric_query(cli::FlagReader& reader, const std::vector<std::string>& known) {
  constexpr std::chrono::seconds kInterval{30};
  MetricQuery query{.metrics = reader.texts("--metric"),
                    .interval = reader.duration("--interval", kInterval),
                    .start = read_moment(reader, "--start"),
                    .end = read_moment(reader, "--end")};
  if (query.metrics.empty()) query.metrics = {"cpuPercentage", "memoryUsage"};
  check_metrics(reader, query.metrics, known);
  if (query.interval <= query.interval.zero() && !reader.is_at_fault("--interval")) {
    reader.fault("--interval", "is not a time");
  }
  if (query.start && query.end && *query.start > *query.end) {
    reader.fault("--end", "is before --start");
  }
  return query;
}

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
/// The used part of GPU memory, which Muster does not sample as such.
constexpr std::string_view kMemoryPart = "gpuMemoryUtilization";

std::string counterpart_of(const std::string& gradient_name) {
  for (const Counterpart& pair : kCounterparts) {
    if (pair.gradient == gradient_name) return std::string(pair.ours);
  }
  return gradient_name;
}

/// One series of a metric for each task, in the order in which the tasks first occur.
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
    } else if (series.rank < same->rank) {  // "no rank" is less than any rank
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

/// The percentage of GPU memory in use, if both used and total memory were sampled.
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

/// Numbers in the format of Gradient's server: "5881856", "0", "93.25".
std::string value_text(double value) {
  std::array<char, 32> digits{};
  // Above this value, doubles cannot represent every integer.
  constexpr double kExact = 9007199254740992.0;
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
std::string_view kind_of_pod(job::TaskRole role) {
  switch (role) {
    case job::TaskRole::kLauncher:
    case job::TaskRole::kMaster:
      return "master";
    case job::TaskRole::kParameterServer:
      return "ps";
    case job::TaskRole::kEvaluator:
      return "evaluator";
    case job::TaskRole::kSingle:
    case job::TaskRole::kChief:
    case job::TaskRole::kWorker:
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
  return base::indented_json_text(json);
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

// experiments metrics: in the format of Gradient's own program.

namespace {

using std::chrono::milliseconds;
using Series = std::vector<MetricSeries>;

Result<Series> read_series(cli::Connection& connection, const std::string& id,
                           const job::MetricQuery& query) {
  return connection.call([&](api::Client& client) { return client.metrics(id, query); });
}

/// The names of the metrics that the program reports, without duplicates.
std::vector<std::string> custom_names(const Series& series) {
  std::vector<std::string> names;
  for (const MetricSeries& one : series) {
    if (job::is_sampled(one.metric)) continue;
    if (std::find(names.begin(), names.end(), one.metric) == names.end()) {
      names.push_back(one.metric);
    }
  }
  return names;
}

enum class Which { kNamed, kCustom };

Result<int> show_metrics(Invocation& invocation, Which which) {
  const std::string id = required(invocation, "--id", "name the experiment");
  const MetricQuery flags = read_metric_query(invocation.reader, {});
  return with_server(
      invocation, kFetch, "Experiment", [&](cli::Connection& connection) -> Result<int> {
        MUSTER_TRY(const job::Job job, get_job(connection, id));
        if (!has_started(job)) {
          note("Experiment has not started yet");
          return cli::kExitRefused;
        }
        // Without a start, all values: nothing is sampled before the tasks have started.
        job::MetricQuery query{
            .since = flags.start, .until = flags.end, .interval = flags.interval};
        if (which == Which::kNamed) query.metrics = metrics_behind(flags.metrics);
        MUSTER_TRY(const Series series, read_series(connection, job.id, query));
        const auto names = which == Which::kNamed ? flags.metrics : custom_names(series);
        MUSTER_CHECK(print_line(metrics_json(job, as_gradient_has_it(names, series))));
        return cli::kExitDone;
      });
}

/// Redraws the table in place on a terminal; elsewhere prints one table below the other.
class MetricsStream {
 public:
  MetricsStream(cli::Connection& connection, std::string id, MetricQuery query)
      : connection_(connection), id_(std::move(id)), query_(std::move(query)) {}

  Result<int> run() {
    while (true) {
      // Reads the job first: if it has ended, the values read afterwards are complete.
      MUSTER_TRY(const job::Job job, get_job(connection_, id_));
      MUSTER_TRY(const std::string table, table_of_values(job));
      if (auto written = print(table); !written) {
        base::Error error = std::move(written).error();
        if (error.code == base::ErrorCode::kUnavailable) return cli::kExitBrokenPipe;
        error.code = base::ErrorCode::kInternal;  // the server refused nothing
        return error;
      }
      if (job::is_final(job.phase)) return cli::kExitDone;
      MUSTER_TRY(const bool goes_on, wait());
      if (!goes_on) return cli::kExitInterrupted;
    }
  }

 private:
  Result<std::string> table_of_values(const job::Job& job) {
    const job::MetricQuery query{.metrics = metrics_behind(query_.metrics), .last = true};
    MUSTER_TRY(const Series series, read_series(connection_, job.id, query));
    return metrics_table(job, query_.metrics, as_gradient_has_it(query_.metrics, series))
        .to_string();
  }

  Result<void> print(const std::string& table) {
    if (!cli::terminal_of(STDOUT_FILENO).is_terminal) return base::write_all(STDOUT_FILENO, table);
    const std::string text = fitting(table, cli::screen_size());
    const std::string back =
        lines_ > 0 ? "\x1b[" + std::to_string(lines_) + "A\x1b[J" : std::string();
    lines_ = std::count(text.begin(), text.end(), '\n');
    return base::write_all(STDOUT_FILENO, back + text);
  }

  /// The part of the table that the next one can overwrite: each line takes one row of the terminal,
  /// and no line leaves the terminal at the top.
  static std::string fitting(std::string_view table, const cli::ScreenSize& size) {
    std::string text;
    for (size_t row = 1; row < size.rows && !table.empty(); ++row) {
      const size_t end = std::min(table.find('\n'), table.size());
      text += cli::cut_to_width(table.substr(0, end), size.columns) + "\n";
      table.remove_prefix(std::min(end + 1, table.size()));
    }
    return text;
  }

  /// Waits until the next table is due or the experiment has ended. False: Ctrl-C.
  Result<bool> wait() {
    constexpr milliseconds kLook{1000};
    for (milliseconds left = query_.interval; left.count() > 0; left -= kLook) {
      pollfd entry{.fd = interrupts_.fd(), .events = POLLIN, .revents = 0};
      ::poll(&entry, 1, static_cast<int>(std::min(left, kLook).count()));
      if (interrupts_.take()) return false;
      MUSTER_TRY(const job::Job job, get_job(connection_, id_));
      if (job::is_final(job.phase)) return true;
    }
    return true;
  }

  cli::Connection& connection_;
  std::string id_;
  MetricQuery query_;
  cli::Interrupts interrupts_;
  int64_t lines_ = 0;  ///< of the last table
};

}  // namespace

Result<int> get_metrics(Invocation& invocation) {
  return show_metrics(invocation, Which::kNamed);
}

Result<int> list_metrics(Invocation& invocation) {
  return show_metrics(invocation, Which::kCustom);
}

Result<int> stream_metrics(Invocation& invocation) {
  const std::string id = required(invocation, "--id", "name the experiment");
  const MetricQuery flags = read_metric_query(invocation.reader, built_in_metrics());
  return with_server(invocation, kFetch, "Experiment",
                     [&](cli::Connection& connection) -> Result<int> {
                       MUSTER_TRY(const job::Job job, get_job(connection, id));
                       if (!has_started(job)) {
                         note("Experiment has not started yet");
                         return cli::kExitRefused;
                       }
                       return MetricsStream(connection, job.id, flags).run();
                     });
}

}  // namespace muster::dialects::gradient
