#include "api/log_query.h"

#include <optional>
#include <vector>

#include "api/fields.h"
#include "api/routes.h"
#include "base/number.h"
#include "job/log_pattern.h"

namespace muster::api {

using base::Fault;
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

/// What is wrong with one parameter, or empty once it is taken into `query`.
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
    return query.since ? "" : in_quotes(value) + " is not a time; write it as 2026-01-31T12:34:56Z";
  }
  if (name == "rank") {
    query.rank = count_of(value);
    return query.rank ? "" : in_quotes(value) + " is not the number of a rank";
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
  // Whose job is meant, and from where on: not for this query.
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

}  // namespace muster::api
