// Which jobs a listing shows, in what order, and how much of it at a time.
//
// Pure. The cursor is opaque to whoever sends it back: it names the last job that was shown, so a
// page is right also where jobs came or went since.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/query_parameters.h"
#include "base/result.h"
#include "job/job.h"
#include "job/log_record.h"
#include "job/metric.h"
#include "record/table.h"

namespace muster::api {

/// On one page.
inline constexpr int kMostJobs = 1000;

struct JobQuery {
  enum class Order { kOldestFirst, kNewestFirst, kByName };

  std::optional<std::string> project;
  std::vector<job::Phase> phases;  ///< any of these; empty: all
  std::optional<std::string> owner;
  std::optional<std::string> prefix;  ///< of the name
  /// "NAME" or "NAME=VALUE": it has all of these labels.
  std::vector<std::string> labels;
  Order order = Order::kOldestFirst;
  int limit = 500;     ///< 1 to kMostJobs
  std::string cursor;  ///< of the page before; empty: the first page

  bool operator==(const JobQuery&) const = default;
};

bool matches(const JobQuery& query, const job::Job& job);

/// Behind which job a page begins, in the order of its query.
struct JobPlace {
  base::Time submitted;  ///< where the order is that of submission
  std::string name;      ///< where it is that of the names: no project has two of one name
  std::string project;

  bool operator==(const JobPlace&) const = default;
};
JobPlace place_of(JobQuery::Order order, const job::Job& job);
std::string cursor_text(JobQuery::Order order, const JobPlace& place);
/// Nothing for what is no cursor of this order.
std::optional<JobPlace> place_of_cursor(JobQuery::Order order, std::string_view cursor);

/// ?project=&phase=Running,Queued&owner=&prefix=&label=NAME&label=NAME=VALUE&sort=submitted|-submitted|name&limit=&cursor=
Parameters job_query_parameters(const JobQuery& query);
/// kInvalid with every fault.
base::Result<JobQuery> job_query_from_parameters(const Parameters& parameters);

/// {"jobs": [...], "next": "CURSOR"}; without "next": that was all.
struct JobPage {
  std::vector<job::Job> jobs;
  std::string next;

  bool operator==(const JobPage&) const = default;
};
const record::Table& table_of(const JobPage*);
/// Written from pointers: a listing copies no job.
std::string job_page_to_json(const std::vector<const job::Job*>& jobs, const std::string& next);
base::Result<JobPage> job_page_from_json(std::string_view text);

// A LogQuery as the query of a URL, both ways.
//
// Pure; thread-safe.

Parameters log_query_to_parameters(const job::LogQuery& query);

/// kInvalid: with a fault for each parameter that is wrong or unknown.
base::Result<job::LogQuery> log_query_from_parameters(const Parameters& parameters);

// What was measured of a job, as it goes over the wire:
//
//   {"series": [{"metric": "loss", "task": "worker-0", "rank": 0,
//                "points": [{"time": "2026-01-31T12:00:00Z", "value": 0.25}, ...]}, ...]}
//
// and the query for it: ?metric=loss&metric=accuracy&task=worker-0&rank=0&since=TIME&until=TIME
// &interval=30s&last=true. An interval is a number with its unit, or of milliseconds.
//
// Pure; thread-safe.

std::string metrics_to_json(const std::vector<job::MetricSeries>& series);
/// kInvalid: it is no such document.
base::Result<std::vector<job::MetricSeries>> metrics_from_json(std::string_view text);

Parameters metric_query_to_parameters(const job::MetricQuery& query);
/// kInvalid: with a fault for each parameter that is wrong or unknown.
base::Result<job::MetricQuery> metric_query_from_parameters(const Parameters& parameters);

}  // namespace muster::api
