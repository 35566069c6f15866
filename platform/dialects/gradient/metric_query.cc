#include "dialects/gradient/metric_query.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "base/units.h"

namespace muster::dialects::gradient {

namespace {

using base::Time;

/// 'd' stands for a digit, '?' for a blank or a T.
bool has_shape(std::string_view text, std::string_view shape) {
  return std::equal(text.begin(), text.end(), shape.begin(), shape.end(),
                    [](char letter, char wanted) {
                      if (wanted == 'd') return letter >= '0' && letter <= '9';
                      if (wanted == '?') return letter == ' ' || letter == 'T';
                      return letter == wanted;
                    });
}

/// REQUIRES: digits stand there.
int number_at(std::string_view text, size_t begin, size_t length) {
  return base::number_of<int>(text.substr(begin, length)).value_or(0);
}

std::optional<Time> parse_time(std::string_view text) {
  const bool has_time = has_shape(text, "dddd-dd-dd?dd:dd:dd");
  if (!has_time && !has_shape(text, "dddd-dd-dd")) return std::nullopt;
  const std::chrono::year_month_day date{
      std::chrono::year(number_at(text, 0, 4)),
      std::chrono::month(static_cast<unsigned>(number_at(text, 5, 2))),
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
    const std::string meant = base::nearest(metric, known);
    std::string what = "'" + metric + "' is none of";
    for (const std::string& name : known) what += " " + name;
    reader.fault("--metric", what + (meant.empty() ? "" : "; did you mean '" + meant + "'?"));
  }
}

}  // namespace

base::Result<Time> parse_metric_time(std::string_view text) {
  if (const auto time = parse_time(text)) return *time;
  return base::Error{.code = base::ErrorCode::kInvalid,
                     .what = "'" + std::string(text) +
                             "' is no time; write 2026-01-31, 2026-01-31T12:00:00 or "
                             "'2026-01-31 12:00:00'",
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
    reader.fault("--interval", "is no time at all");
  }
  if (query.start && query.end && *query.start > *query.end) {
    reader.fault("--end", "is before --start");
  }
  return query;
}

}  // namespace muster::dialects::gradient
