// The parameters of requests for the logs and the metrics of a job.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/fields.h"
#include "api/job_query.h"
#include "api/routes.h"
#include "base/text.h"
#include "base/units.h"
#include "job/log_record.h"
#include "job/metric.h"
#include "words/job_table.h"

namespace muster::api {

using base::Fault;

using job::LogQuery;

namespace {

std::optional<int> count_of(std::string_view text) {
  const auto count = base::number_of<int>(text);
  return count && *count >= 0 ? count : std::nullopt;
}

/// The fault of one parameter; empty if it was stored in `query`.
std::string take_log_parameter(LogQuery& query, const std::string& name, const std::string& value) {
  if (name == "follow") return take_flag(value, query.follow);
  if (name == "task") {
    query.task = value;
    return "";
  }
  if (name == "since") {
    query.since = parse_rfc3339(value);
    return query.since ? "" : in_quotes(value) + " is not a time such as 2026-01-31T12:34:56Z";
  }
  if (name == "rank") {
    query.rank = count_of(value);
    return query.rank ? "" : in_quotes(value) + " is not a rank; give 0 or more";
  }
  if (name == "grep") {
    const auto pattern = job::LogPattern::compile(value);
    query.grep = value;
    return pattern ? "" : pattern.error().what;
  }
  if (name == "attempt") {
    const auto attempt = base::number_of<int>(value);
    if (attempt && *attempt >= 1) query.attempt = attempt;
    return query.attempt ? "" : in_quotes(value) + " is not an attempt; give 1 or more";
  }
  if (name == "tail") {
    query.tail = count_of(value);
    return query.tail ? "" : in_quotes(value) + " is not a number of lines";
  }
  // The project of the job, and the place to continue from; not part of this query.
  if (name == "project" || name == kLastEventIdParameter) return "";
  return unknown_parameter(name, {"follow", "task", "attempt", "rank", "grep", "since", "tail"});
}

}  // namespace

Parameters log_query_to_parameters(const LogQuery& query) {
  Parameters parameters;
  if (query.follow) parameters["follow"] = "true";
  if (query.task) parameters["task"] = *query.task;
  if (query.attempt) parameters["attempt"] = std::to_string(*query.attempt);
  if (query.rank) parameters["rank"] = std::to_string(*query.rank);
  if (!query.grep.empty()) parameters["grep"] = query.grep;
  if (query.since) append_rfc3339(parameters["since"], *query.since);
  if (query.tail) parameters["tail"] = std::to_string(*query.tail);
  return parameters;
}

base::Result<LogQuery> log_query_from_parameters(const Parameters& parameters) {
  LogQuery query;
  std::vector<Fault> faults =
      read_parameters(parameters, [&](const std::string& name, const std::string& value) {
        return take_log_parameter(query, name, value);
      });
  if (faults.empty()) return query;
  return wrong_query("the query for logs is invalid", std::move(faults));
}

using job::MetricQuery;
using job::MetricSeries;
using std::chrono::milliseconds;

namespace {

/// Longer intervals would overflow in nanoseconds.
constexpr milliseconds kLongest = std::chrono::days(3650);

std::optional<milliseconds> interval_of(const std::string& text) {
  const auto number = base::number_of<int64_t>(text);
  if (number && *number >= 0 && *number <= kLongest.count()) return milliseconds(*number);
  const auto duration = base::parse_duration(text);
  if (number || !duration || *duration > kLongest) return std::nullopt;
  return *duration;
}

std::string not_a_time(const std::string& value) {
  return in_quotes(value) + " is not a time such as 2026-01-31T12:34:56Z";
}

std::string take_metric(MetricQuery& query, const std::string& value) {
  if (!job::is_metric_name(value)) {
    return in_quotes(value) + " is not a metric name: use letters, digits and _./-, at most " +
           std::to_string(job::kMaxMetricName);
  }
  query.metrics.push_back(value);
  return "";
}

std::string take_rank(MetricQuery& query, const std::string& value) {
  query.rank = base::number_of<int>(value);
  const bool ok = query.rank && *query.rank >= 0;
  return ok ? "" : in_quotes(value) + " is not a rank; give 0 or more";
}

/// The fault of one parameter; empty if it was stored in `query`.
std::string take_metric_parameter(MetricQuery& query, const std::string& name,
                                  const std::string& value) {
  if (name == "metric") return take_metric(query, value);
  if (name == "rank") return take_rank(query, value);
  if (name == "last") return take_flag(value, query.last);
  if (name == "task") {
    query.task = value;
    return "";
  }
  if (name == "since" || name == "until") {
    auto& moment = name == "since" ? query.since : query.until;
    moment = parse_rfc3339(value);
    return moment ? "" : not_a_time(value);
  }
  if (name == "interval") {
    const auto interval = interval_of(value);
    query.interval = interval.value_or(milliseconds(0));
    return interval ? ""
                    : in_quotes(value) + " is not an interval such as 30s, or 500 in milliseconds";
  }
  if (name == "project") return "";  // the project of the job; not part of this query
  return unknown_parameter(
      name, {"metric", "task", "rank", "since", "until", "interval", "last", "project"});
}

}  // namespace

std::string metrics_to_json(const std::vector<MetricSeries>& series) {
  return record::list_to_json("series", series);
}
base::Result<std::vector<MetricSeries>> metrics_from_json(std::string_view text) {
  return record::list_from_json<MetricSeries>(text, "series");
}

Parameters metric_query_to_parameters(const MetricQuery& query) {
  Parameters parameters;
  for (const std::string& metric : query.metrics) parameters.add("metric", metric);
  if (query.task) parameters["task"] = *query.task;
  if (query.rank) parameters["rank"] = std::to_string(*query.rank);
  if (query.since) append_rfc3339(parameters["since"], *query.since);
  if (query.until) append_rfc3339(parameters["until"], *query.until);
  if (query.interval.count() > 0) {
    parameters["interval"] = std::to_string(query.interval.count());
  }
  if (query.last) parameters["last"] = "true";
  return parameters;
}

base::Result<MetricQuery> metric_query_from_parameters(const Parameters& parameters) {
  MetricQuery query;
  std::vector<base::Fault> faults =
      read_parameters(parameters, [&](const std::string& name, const std::string& value) {
        return take_metric_parameter(query, name, value);
      });
  if (faults.empty()) return query;
  return wrong_query("the query for metrics is invalid", std::move(faults));
}

}  // namespace muster::api
