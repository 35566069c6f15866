// The jobs of a listing, their order, and the size of a page.
//
// Pure. The cursor is opaque for clients: it contains the last job of a page, so the next page is
// correct even if jobs were added or removed in between.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/query_parameters.h"
#include "base/result.h"
#include "job/job.h"
#include "job/job_facts.h"
#include "job/log_record.h"
#include "job/metric.h"
#include "record/table.h"

namespace muster::api {

/// The maximum for one page.
inline constexpr int kMostJobs = 1000;

/// The sort key of a listing. Jobs with equal keys follow newest first.
enum class JobColumn {
  kSubmitted,
  kStarted,
  kEnded,
  kDuration,
  kName,
  kProject,
  kOwner,
  kKind,
  kPhase,
  kPriority,
  kGpus,
};

/// Jobs without a value in the column (they have not started or ended) are last in both directions.
struct JobOrder {
  JobColumn by = JobColumn::kSubmitted;
  bool descending = false;

  static const JobOrder kOldestFirst;
  static const JobOrder kNewestFirst;
  static const JobOrder kByName;  ///< and jobs of one name by project

  auto operator<=>(const JobOrder&) const = default;
};
inline constexpr JobOrder JobOrder::kOldestFirst{};
inline constexpr JobOrder JobOrder::kNewestFirst{.by = JobColumn::kSubmitted, .descending = true};
inline constexpr JobOrder JobOrder::kByName{.by = JobColumn::kName, .descending = false};

/// "submitted", "-submitted", "name" ...; "age" is "-submitted".
std::string order_name(JobOrder order);
std::optional<JobOrder> order_of(std::string_view name);
/// The names of all columns, ascending.
std::vector<std::string> order_names();

/// `after` <= time < `before`.
struct TimeSpan {
  std::optional<base::Time> after;
  std::optional<base::Time> before;

  bool is_none() const { return !after && !before; }
  bool contains(const std::optional<base::Time>& time) const;
  bool operator==(const TimeSpan&) const = default;
};

/// The jobs that were made from other objects.
struct OriginFilter {
  job::JobOrigin::Kind kind = job::JobOrigin::Kind::kRerun;
  std::string of;  ///< name or id of the object; empty: any

  bool operator==(const OriginFilter&) const = default;
};

struct JobQuery {
  using Order = JobOrder;

  std::optional<std::string> project;
  std::vector<job::Phase> phases;  ///< any of these; empty: all
  std::optional<std::string> owner;
  std::optional<std::string> prefix;  ///< of the name
  /// "NAME", "NAME=VALUE", "!NAME" or "NAME!=VALUE": all of them hold. The last two also hold for a
  /// job without the label.
  std::vector<std::string> labels;
  Order order;
  int limit = 500;     ///< 1 to kMostJobs
  std::string cursor;  ///< from the previous page; empty: the first page

  std::vector<job::Kind> kinds;  ///< any of these; empty: all
  /// Each word is part of the name, the id, a label or the command, in upper or lower case.
  std::string text;
  TimeSpan submitted;
  TimeSpan started;
  TimeSpan ended;
  std::optional<OriginFilter> origin;
  bool top = false;    ///< without the members of arrays and sweeps
  bool count = false;  ///< also count all matching jobs

  bool operator==(const JobQuery&) const = default;
};

/// What a query filters and sorts by: of a job, or of an object that is listed like a job, such as
/// an array with the spec of its members.
using job::gpu_milli_of;
using job::JobFacts;

/// The conditions of a query, prepared for many jobs. Not thread-safe.
class JobFilter {
 public:
  /// `query` must outlive the filter.
  explicit JobFilter(const JobQuery& query);

  bool takes(const JobFacts& job) const { return takes_phase(job) && takes_apart_from_phase(job); }
  bool takes_phase(const JobFacts& job) const {
    return job.has_phase ? (phases_ >> static_cast<int>(job.phase) & 1U) != 0 : takes_unphased_;
  }
  bool takes_apart_from_phase(const JobFacts& job) const {
    return !has_conditions_ || meets_conditions(job);
  }

 private:
  bool meets_conditions(const JobFacts& job) const;
  bool has_words(const JobFacts& job) const;

  const JobQuery& query_;
  uint32_t phases_ = 0;                ///< one bit for each phase that the query asks for
  bool takes_unphased_ = false;        ///< objects without a phase
  bool has_conditions_;                ///< apart from the phases
  std::vector<std::string> words_;     ///< of query.text, in lower case
  mutable std::string searched_ = {};  ///< kept for its memory
};

bool matches(const JobQuery& query, const job::Job& job);

/// Whether the query has no condition but for the phases, and that a job is no member (JobQuery::top).
bool takes_every_job(const JobQuery& query);

/// The place of a job in an order. `Text`: std::string, or std::string_view for a place that is only
/// compared.
template <class Text>
struct PlaceInOrder {
  bool is_absent = false;  ///< it has no value in the column
  int64_t number = 0;      ///< the value of the column, if that is a number or a time
  Text text;               ///< or a text
  Text project;            ///< in the order by name
  base::Time submitted;
  Text id;
  /// The time at which durations are measured, on all pages.
  base::Time now;

  bool operator==(const PlaceInOrder&) const = default;
};
using JobPlace = PlaceInOrder<std::string>;
/// Valid as long as the facts of the job.
using JobPlaceView = PlaceInOrder<std::string_view>;

JobPlaceView place_of(JobOrder order, const JobFacts& job, base::Time now = {});
JobPlace copy_of(const JobPlaceView& place);
bool comes_before(JobOrder order, const JobPlace& left, const JobPlace& right);
bool comes_before(JobOrder order, const JobPlace& left, const JobPlaceView& right);
bool comes_before(JobOrder order, const JobPlaceView& left, const JobPlace& right);
std::string cursor_text(JobOrder order, const JobPlace& place);
/// Nothing if the text is not a cursor of this order.
std::optional<JobPlace> place_of_cursor(JobOrder order, std::string_view cursor);

/// ?project=&phase=Running,Queued&owner=&prefix=&label=NAME&label=NAME=VALUE&kind=mpi,torch&text=
/// &submitted_after=TIME&submitted_before=&started_after=&...&origin=array/train&top=true
/// &sort=-submitted&limit=&cursor=&count=true
///
/// A phase may be `active` (has not ended) or `ended`, in upper or lower case.
Parameters job_query_parameters(const JobQuery& query);
/// kInvalid with every fault.
base::Result<JobQuery> job_query_from_parameters(const Parameters& parameters);

/// How many jobs match a query, on all pages.
struct JobCounts {
  int64_t all = 0;
  // The jobs that match the query apart from its phases.
  int64_t queued = 0;
  int64_t starting = 0;
  int64_t running = 0;
  int64_t succeeded = 0;
  int64_t failed = 0;
  int64_t stopped = 0;

  bool operator==(const JobCounts&) const = default;
};
const record::Table& table_of(const JobCounts*);

/// {"jobs": [...], "next": "CURSOR"}; without "next" there are no more pages.
struct JobPage {
  std::vector<job::Job> jobs;
  std::string next;
  std::optional<JobCounts> counts;  ///< if the query asks for them

  bool operator==(const JobPage&) const = default;
};
const record::Table& table_of(const JobPage*);
/// Written from pointers, so that a listing copies no job.
std::string job_page_to_json(const std::vector<const job::Job*>& jobs, const std::string& next,
                             const std::optional<JobCounts>& counts = {});
base::Result<JobPage> job_page_from_json(std::string_view text);

/// A page of GET /v1/queue: ?limit=&cursor=. The answer is a JobPage without counts.
///
/// The queue changes between two pages. A page begins behind the last job of the page before, or
/// with the first job if that one waits no longer: jobs may be on two pages.
struct QueueQuery {
  int limit = kMostJobs;  ///< 1 to kMostJobs
  std::string cursor;     ///< the id of the last job of the previous page; empty: the first page

  bool operator==(const QueueQuery&) const = default;
};
Parameters queue_query_parameters(const QueueQuery& query);
/// kInvalid with every fault.
base::Result<QueueQuery> queue_query_from_parameters(const Parameters& parameters);
/// The schema of a page.
const record::Table& queue_page_table();

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
