#include "api/log_query.h"

#include <charconv>
#include <vector>

#include "api/rfc3339.h"
#include "api/routes.h"
#include "api/utf8.h"
#include "base/text.h"

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
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool whole = end == text.data() + text.size();
  if (error != std::errc() || !whole || count < 0) return std::nullopt;
  return count;
}

/// What is wrong with one parameter, or empty once it is taken into `query`.
std::string take(LogQuery& query, const std::string& name, const std::string& value) {
  const std::string quoted = "'" + shortened(as_utf8(value)) + "'";
  if (name == "follow") {
    const auto follow = flag_of(value);
    query.follow = follow.value_or(false);
    return follow ? "" : quoted + " is neither true nor false";
  }
  if (name == "task") {
    query.task = value;
    return "";
  }
  if (name == "since") {
    query.since = parse_rfc3339(value);
    return query.since ? "" : quoted + " is not a time; write it as 2026-01-31T12:34:56Z";
  }
  if (name == "tail") {
    query.tail = count_of(value);
    return query.tail ? "" : quoted + " is not a number of lines";
  }
  // Whose job is meant, and from where on: not for this query.
  if (name == "project" || name == kLastEventIdParameter) return "";
  const std::string near = base::nearest(shortened(name), {"follow", "task", "since", "tail"});
  return near.empty() ? "is not a parameter" : "is not a parameter; did you mean '" + near + "'?";
}

}  // namespace

Parameters log_query_to_parameters(const LogQuery& query) {
  Parameters parameters;
  if (query.follow) parameters["follow"] = "true";
  if (query.task) parameters["task"] = *query.task;
  if (query.since) append_rfc3339(parameters["since"], *query.since);
  if (query.tail) parameters["tail"] = std::to_string(*query.tail);
  return parameters;
}

base::Result<LogQuery> log_query_from_parameters(const Parameters& parameters) {
  LogQuery query;
  std::vector<Fault> faults;
  for (const auto& [name, value] : parameters) {
    std::string what = take(query, name, value);
    if (!what.empty()) faults.push_back({.field = shortened(as_utf8(name)), .what = what});
  }
  if (faults.empty()) return query;
  return base::Error{.code = base::ErrorCode::kInvalid,
                     .what = "the query for logs is wrong",
                     .faults = std::move(faults)};
}

}  // namespace muster::api
