// The jobs of a listing, their order, and the size of a page.
//
// Pure. The cursor is opaque for clients: it contains the last job of a page, so the next page is
// correct even if jobs were added or removed in between.
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

/// The maximum for one page.
inline constexpr int kMostJobs = 1000;

struct JobQuery {
  enum class Order { kOldestFirst, kNewestFirst, kByName };

  std::optional<std::string> project;
  std::vector<job::Phase> phases;  ///< any of these; empty: all
  std::optional<std::string> owner;
  std::optional<std::string> prefix;  ///< of the name
  /// "NAME" or "NAME=VALUE": the job has all of these labels.
  std::vector<std::string> labels;
  Order order = Order::kOldestFirst;
  int limit = 500;     ///< 1 to kMostJobs
  std::string cursor;  ///< from the previous page; empty: the first page

  bool operator==(const JobQuery&) const = default;
};

bool matches(const JobQuery& query, const job::Job& job);

/// The job after which a page begins, in the order of its query.
struct JobPlace {
  base::Time submitted;  ///< if the order is that of submission
  std::string name;      ///< if the order is by name; unique together with the project
  std::string project;

  bool operator==(const JobPlace&) const = default;
};
JobPlace place_of(JobQuery::Order order, const job::Job& job);
std::string cursor_text(JobQuery::Order order, const JobPlace& place);
/// Nothing if the text is not a cursor of this order.
std::optional<JobPlace> place_of_cursor(JobQuery::Order order, std::string_view cursor);

/// ?project=&phase=Running,Queued&owner=&prefix=&label=NAME&label=NAME=VALUE&sort=submitted|-submitted|name&limit=&cursor=
Parameters job_query_parameters(const JobQuery& query);
/// kInvalid with every fault.
base::Result<JobQuery> job_query_from_parameters(const Parameters& parameters);

/// {"jobs": [...], "next": "CURSOR"}; without "next" there are no more pages.
struct JobPage {
  std::vector<job::Job> jobs;
  std::string next;

  bool operator==(const JobPage&) const = default;
};
const record::Table& table_of(const JobPage*);
/// Written from pointers, so that a listing copies no job.
std::string job_page_to_json(const std::vector<const job::Job*>& jobs, const std::string& next);
base::Result<JobPage> job_page_from_json(std::string_view text);

// A LogQuery as the query of a URL, in both directions.
//
// Pure; thread-safe.

Parameters log_query_to_parameters(const job::LogQuery& query);

/// kInvalid: with a fault for each parameter that is wrong or unknown.
base::Result<job::LogQuery> log_query_from_parameters(const Parameters& parameters);

// The metrics of a job on the wire:
//
//   {"series": [{"metric": "loss", "task": "worker-0", "rank": 0,
//                "points": [{"time": "2026-01-31T12:00:00Z", "value": 0.25}, ...]}, ...]}
//
// and their query: ?metric=loss&metric=accuracy&task=worker-0&rank=0&since=TIME&until=TIME
// &interval=30s&last=true. An interval is a number with a unit, or a number of milliseconds.
//
// Pure; thread-safe.

std::string metrics_to_json(const std::vector<job::MetricSeries>& series);
/// kInvalid: not such a document.
base::Result<std::vector<job::MetricSeries>> metrics_from_json(std::string_view text);

Parameters metric_query_to_parameters(const job::MetricQuery& query);
/// kInvalid: with a fault for each parameter that is wrong or unknown.
base::Result<job::MetricQuery> metric_query_from_parameters(const Parameters& parameters);

}  // namespace muster::api
