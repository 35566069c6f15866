#include "api/metric_wire.h"

#include <optional>

#include "api/fields.h"
#include "base/number.h"
#include "base/units.h"
#include "job/metric_table.h"

namespace muster::api {

using job::MetricQuery;
using job::MetricSeries;
using std::chrono::milliseconds;

namespace {

/// More could not be counted in nanoseconds.
constexpr milliseconds kLongest = std::chrono::days(3650);

std::optional<milliseconds> interval_of(const std::string& text) {
  const auto number = base::number_of<int64_t>(text);
  if (number && *number >= 0 && *number <= kLongest.count()) return milliseconds(*number);
  const auto duration = base::parse_duration(text);
  if (number || !duration || *duration > kLongest) return std::nullopt;
  return *duration;
}

std::string not_a_time(const std::string& value) {
  return in_quotes(value) + " is not a time; write it as 2026-01-31T12:34:56Z";
}

std::string take_metric(MetricQuery& query, const std::string& value) {
  if (!job::is_metric_name(value)) {
    return in_quotes(value) + " is no name of a metric: letters, digits and _./-, at most " +
           std::to_string(job::kMaxMetricName);
  }
  query.metrics.push_back(value);
  return "";
}

std::string take_rank(MetricQuery& query, const std::string& value) {
  query.rank = base::number_of<int>(value);
  const bool ok = query.rank && *query.rank >= 0;
  return ok ? "" : in_quotes(value) + " is no rank; it is a number, 0 or more";
}

std::string take_last(MetricQuery& query, const std::string& value) {
  query.last = value == "true";
  return query.last || value == "false" ? "" : in_quotes(value) + " is neither true nor false";
}

/// What is wrong with one parameter, or empty once it is taken into `query`.
std::string take_metric_parameter(MetricQuery& query, const std::string& name,
                                  const std::string& value) {
  if (name == "metric") return take_metric(query, value);
  if (name == "rank") return take_rank(query, value);
  if (name == "last") return take_last(query, value);
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
    return interval ? "" : in_quotes(value) + " is no interval; write it as 30s, or as 500: in ms";
  }
  if (name == "project") return "";  // whose job is meant: not for this query
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
  return wrong_query("the query for metrics is wrong", std::move(faults));
}

}  // namespace muster::api
