#include "api/job_query.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "api/fields.h"
#include "api/routes.h"
#include "base/bytes.h"
#include "base/text.h"
#include "base/units.h"
#include "job/log_record.h"
#include "job/metric.h"
#include "record/field.h"
#include "record/input.h"
#include "words/job_table.h"

namespace muster::api {

using base::Fault;
using base::number_of;
using Order = JobQuery::Order;

namespace {

/// Separates name and project, which cannot contain it.
constexpr char kSeparator = '\n';

std::string_view order_name(Order order) {
  switch (order) {
    case Order::kNewestFirst:
      return "-submitted";
    case Order::kByName:
      return "name";
    default:
      return "submitted";
  }
}

std::optional<Order> order_of(std::string_view name) {
  for (const Order order : {Order::kOldestFirst, Order::kNewestFirst, Order::kByName}) {
    if (order_name(order) == name) return order;
  }
  return std::nullopt;
}

/// Base64 for URLs, which needs no escapes (RFC 4648, section 5).
std::string url_base64(std::string_view bytes) {
  std::string text = base::to_base64_for_urls(bytes);
  while (text.ends_with('=')) text.pop_back();
  return text;
}

std::optional<std::string> from_url_base64(std::string_view text) {
  if (text.find_first_of("+/=") != std::string_view::npos) return std::nullopt;
  std::string plain(text);
  std::replace(plain.begin(), plain.end(), '-', '+');
  std::replace(plain.begin(), plain.end(), '_', '/');
  while (plain.size() % 4 != 0) plain += '=';
  return base::from_base64(plain);
}

/// Reads each phase of "Running,Queued"; returns the first invalid one, if any.
std::optional<std::string> take_phases(const std::string& words, std::vector<job::Phase>& into) {
  for (const std::string& word : base::split(words, ',')) {
    const auto phase = job::phase_of(word);
    if (!phase) return word;
    into.push_back(*phase);
  }
  return std::nullopt;
}

/// `wanted`: "NAME" or "NAME=VALUE"; names do not contain '='.
bool has_label(const job::JobSpec& spec, const std::string& wanted) {
  const size_t end = wanted.find('=');
  const auto found = spec.labels.find(wanted.substr(0, end));
  if (found == spec.labels.end()) return false;
  return end == std::string::npos || found->second == wanted.substr(end + 1);
}

/// The fault of one parameter; empty if it was stored in `query`.
std::string take_job_parameter(JobQuery& query, const std::string& name, const std::string& value) {
  if (name == "project" || name == "owner" || name == "prefix") {
    (name == "project" ? query.project : name == "owner" ? query.owner : query.prefix) = value;
    return "";
  }
  if (name == "cursor") {
    query.cursor = value;
    return "";
  }
  if (name == "label") {
    query.labels.push_back(value);
    return value.empty() || value.starts_with('=')
               ? in_quotes(value) + " is neither NAME nor NAME=VALUE"
               : "";
  }
  if (name == "phase") {
    const auto wrong = take_phases(value, query.phases);
    return wrong ? record::not_a_choice(
                       *wrong, {"Queued", "Starting", "Running", "Succeeded", "Failed", "Stopped"})
                 : "";
  }
  if (name == "sort") {
    const auto order = order_of(value);
    query.order = order.value_or(Order::kOldestFirst);
    return order ? "" : record::not_a_choice(value, {"submitted", "-submitted", "name"});
  }
  if (name == "limit") {
    const auto limit = number_of<int>(value);
    const bool right = limit && *limit >= 1 && *limit <= kMostJobs;
    query.limit = right ? *limit : 1;
    return right ? ""
                 : in_quotes(value) + " is not a number from 1 to " + std::to_string(kMostJobs);
  }
  return unknown_parameter(
      name, {"project", "phase", "owner", "prefix", "label", "sort", "limit", "cursor"});
}

}  // namespace

bool matches(const JobQuery& query, const job::Job& job) {
  if (query.project && *query.project != job.spec.project) return false;
  if (query.owner && *query.owner != job.owner) return false;
  if (query.prefix && !job.spec.name.starts_with(*query.prefix)) return false;
  if (!std::all_of(query.labels.begin(), query.labels.end(),
                   [&](const std::string& label) { return has_label(job.spec, label); })) {
    return false;
  }
  return query.phases.empty() ||
         std::find(query.phases.begin(), query.phases.end(), job.phase) != query.phases.end();
}

JobPlace place_of(Order order, const job::Job& job) {
  if (order == Order::kByName) {
    return {.submitted = {}, .name = job.spec.name, .project = job.spec.project};
  }
  return {.submitted = job.submitted, .name = {}, .project = {}};
}

std::string cursor_text(Order order, const JobPlace& place) {
  const std::string mark = std::string(order_name(order)) + kSeparator;
  if (order == Order::kByName) return url_base64(mark + place.name + kSeparator + place.project);
  return url_base64(mark + std::to_string(place.submitted.time_since_epoch().count()));
}

std::optional<JobPlace> place_of_cursor(Order order, std::string_view cursor) {
  const auto text = from_url_base64(cursor);
  if (!text) return std::nullopt;
  const std::vector<std::string> parts = base::split(*text, kSeparator);
  if (parts.empty() || parts.front() != order_name(order)) return std::nullopt;
  if (order == Order::kByName) {
    if (parts.size() != 3) return std::nullopt;
    return JobPlace{.submitted = {}, .name = parts[1], .project = parts[2]};
  }
  if (parts.size() != 2) return std::nullopt;
  const auto submitted = number_of<int64_t>(parts[1]);
  if (!submitted) return std::nullopt;
  return JobPlace{
      .submitted = base::Time(std::chrono::nanoseconds(*submitted)), .name = {}, .project = {}};
}

Parameters job_query_parameters(const JobQuery& query) {
  Parameters parameters;
  if (query.project) parameters["project"] = *query.project;
  if (query.owner) parameters["owner"] = *query.owner;
  if (query.prefix) parameters["prefix"] = *query.prefix;
  for (const job::Phase phase : query.phases) {
    std::string& phases = parameters["phase"];
    phases += (phases.empty() ? "" : ",") + std::string(job::to_string(phase));
  }
  for (const std::string& label : query.labels) parameters.add("label", label);
  const JobQuery usual;
  if (query.order != usual.order) parameters["sort"] = order_name(query.order);
  if (query.limit != usual.limit) parameters["limit"] = std::to_string(query.limit);
  if (!query.cursor.empty()) parameters["cursor"] = query.cursor;
  return parameters;
}

base::Result<JobQuery> job_query_from_parameters(const Parameters& parameters) {
  JobQuery query;
  std::vector<Fault> faults =
      read_parameters(parameters, [&](const std::string& name, const std::string& value) {
        return take_job_parameter(query, name, value);
      });
  if (!query.cursor.empty() && !place_of_cursor(query.order, query.cursor)) {
    faults.push_back(
        {.field = "cursor",
         .what = in_quotes(query.cursor) + " is not the 'next' of a page with the same 'sort'"});
  }
  if (faults.empty()) return query;
  return wrong_query("the query for jobs is wrong", std::move(faults));
}

std::string job_page_to_json(const std::vector<const job::Job*>& jobs, const std::string& next) {
  std::string text;
  record::JsonWriter json(text);
  json.open('{').key("jobs").open('[');
  for (const job::Job* job : jobs) record::write(json, *job);
  json.close(']');
  if (!next.empty()) json.key("next").text(next);
  json.close('}');
  return text;
}

const record::Table& table_of(const JobPage*) {
  static const record::Table table =
      record::table<JobPage>(
          "JobPage", {record::field<&JobPage::jobs>("jobs", {.need = record::Need::kRequired}),
                      record::field<&JobPage::next>(
                          "next", {.help = "The `cursor` of the next page. Absent: this is the "
                                           "last page."})})
          .as_answer();
  return table;
}

base::Result<JobPage> job_page_from_json(std::string_view text) {
  return record::from_json<JobPage>(text, "list of jobs");
}

using job::LogQuery;

namespace {

std::optional<bool> flag_of(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return std::nullopt;
}

std::optional<int> count_of(std::string_view text) {
  const auto count = base::number_of<int>(text);
  return count && *count >= 0 ? count : std::nullopt;
}

/// The fault of one parameter; empty if it was stored in `query`.
std::string take_log_parameter(LogQuery& query, const std::string& name, const std::string& value) {
  if (name == "follow") {
    const auto follow = flag_of(value);
    query.follow = follow.value_or(false);
    return follow ? "" : in_quotes(value) + " is neither true nor false";
  }
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
  if (name == "tail") {
    query.tail = count_of(value);
    return query.tail ? "" : in_quotes(value) + " is not a number of lines";
  }
  // The project of the job, and the place to continue from; not part of this query.
  if (name == "project" || name == kLastEventIdParameter) return "";
  return unknown_parameter(name, {"follow", "task", "rank", "grep", "since", "tail"});
}

}  // namespace

Parameters log_query_to_parameters(const LogQuery& query) {
  Parameters parameters;
  if (query.follow) parameters["follow"] = "true";
  if (query.task) parameters["task"] = *query.task;
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
  return wrong_query("the query for logs is wrong", std::move(faults));
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

std::string take_last(MetricQuery& query, const std::string& value) {
  query.last = value == "true";
  return query.last || value == "false" ? "" : in_quotes(value) + " is neither true nor false";
}

/// The fault of one parameter; empty if it was stored in `query`.
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
  return wrong_query("the query for metrics is wrong", std::move(faults));
}

}  // namespace muster::api
