// GET /v1/jobs and GET /v1/list: one page of the jobs that match a query, as whole documents or as
// rows. A listing in the order of submission or of names reads the index of jobs and stops after a
// page; every other order, and a count, examines all jobs.
//
// Jobs are copied only if parts must be removed for the caller, or if their progress is added.
// (Ended jobs have no progress here, because it would have to be read from files; the page of a
// single job has it.)

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/job_query.h"
#include "api/job_rows.h"
#include "base/clock.h"
#include "base/text.h"
#include "control/sweeps.h"
#include "job/array.h"
#include "job/validate.h"
#include "server/listed_objects.h"
#include "server/router.h"
#include "server/routes.h"
#include "server/sight.h"

namespace muster::server {

namespace {

using api::JobCounts;
using api::JobOrder;
using api::JobPlace;
using api::JobQuery;
using base::Result;
using control::Controller;
using job::Job;
using job::JobFacts;

constexpr size_t kMostBytes = 4 << 20;  // of a page, approximately

/// Called for each of a million jobs.
bool sees(const Sight& sight, const JobFacts& job) {
  return sight.sees_all() || sight.sees(job);
}

/// A job or another object of the page. Place::id is that of the job.
struct Entry {
  JobPlace place;
  std::optional<api::JobRow> row = {};  ///< of another object
};

/// The jobs and objects that a query finds for a caller.
class Listing {
 public:
  Listing(const Controller& controller, const Sight& sight, const JobQuery& query)
      : controller_(controller), sight_(sight), query_(query), filter_(query) {
    if (!query.cursor.empty()) from_ = place_of_cursor(query.order, query.cursor);
    now_ = from_ && query.order.by == api::JobColumn::kDuration ? from_->now
                                                                : base::SystemClock().now();
  }

  /// The entries of the page, in order, and one more if there is a next page.
  std::vector<Entry> find(size_t most, bool with_objects) {
    if (query_.count) {
      examine_all(most);
    } else if (query_.order == JobOrder::kByName) {
      by_name(most);
    } else if (query_.order.by == api::JobColumn::kSubmitted) {
      by_time(most);
    } else {
      examine_all(most);
    }
    if (with_objects) add_objects();
    std::sort(entries_.begin(), entries_.end(), [this](const Entry& left, const Entry& right) {
      return comes_before(query_.order, left.place, right.place);
    });
    if (entries_.size() > most) entries_.resize(most);
    return std::move(entries_);
  }

  std::optional<JobCounts> counts() const {
    return query_.count ? std::optional(counts_) : std::nullopt;
  }

 private:
  bool is_after_cursor(const JobPlace& place) const {
    return !from_ || comes_before(query_.order, *from_, place);
  }

  void add(const JobFacts& job) {
    Entry entry{.place = place_of(query_.order, job, now_)};
    if (is_after_cursor(entry.place)) entries_.push_back(std::move(entry));
  }

  void by_time(size_t most) {
    std::optional<base::Time> after;
    if (from_) after = from_->submitted;
    controller_.jobs().each_job(query_.order.descending, after, [&](const JobFacts& job) {
      if (filter_.takes(job) && sees(sight_, job)) add(job);
      return entries_.size() < most;
    });
  }

  /// Names with the same prefix are adjacent, so no other names are examined.
  void by_name(size_t most) {
    const std::string prefix = query_.prefix.value_or("");
    const JobPlace from = from_.value_or(JobPlace{.text = prefix});
    controller_.jobs().each_job_from(from.text, from.project, [&](const JobFacts& job) {
      if (!job.name.starts_with(prefix)) return false;
      if (filter_.takes(job) && sees(sight_, job)) add(job);
      return entries_.size() < most;
    });
  }

  /// Keeps the first `most` entries after the cursor: a heap with the last of them on top.
  void examine_all(size_t most) {
    const auto earlier = [this](const Entry& left, const Entry& right) {
      return comes_before(query_.order, left.place, right.place);
    };
    // Equal jobs follow newest first: examined in that order, none displaces a kept one.
    const bool newest_first = query_.order != JobOrder::kOldestFirst;
    controller_.jobs().each_job(newest_first, std::nullopt, [&](const JobFacts& job) {
      if (!is_counted(job, [&] { return sees(sight_, job); })) return true;
      // Newest first and oldest first, later jobs are after all kept ones.
      if (query_.order.by == api::JobColumn::kSubmitted && entries_.size() >= most) return true;
      Entry entry{.place = place_of(query_.order, job, now_)};
      if (!is_after_cursor(entry.place)) return true;
      if (entries_.size() == most) {
        if (!earlier(entry, entries_.front())) return true;
        std::pop_heap(entries_.begin(), entries_.end(), earlier);
        entries_.pop_back();
      }
      entries_.push_back(std::move(entry));
      std::push_heap(entries_.begin(), entries_.end(), earlier);
      return true;
    });
  }

  /// Whether the query finds it; counts it.
  template <class Seen>
  bool is_counted(const JobFacts& job, const Seen& seen) {
    if (!filter_.takes_apart_from_phase(job)) return false;
    const bool takes_phase = filter_.takes_phase(job);
    if (!takes_phase && !query_.count) return false;
    if (!seen()) return false;
    if (job.has_phase) ++job::count_of_phase(counts_, job.phase);
    if (takes_phase) ++counts_.all;
    return takes_phase;
  }

  void add_objects() {
    each_listed_object(controller_, sight_, [&](const ListedObject& object) {
      if (!is_counted(object.listed, [] { return true; })) return;
      Entry entry{.place = place_of(query_.order, object.listed, now_)};
      if (!is_after_cursor(entry.place)) return;
      entry.row = object.row();
      entries_.push_back(std::move(entry));
    });
  }

  const Controller& controller_;
  const Sight& sight_;
  const JobQuery& query_;
  api::JobFilter filter_;
  std::optional<JobPlace> from_;
  base::Time now_;
  std::vector<Entry> entries_;
  JobCounts counts_;
};

Result<JobQuery> query_of(const Sight& sight, const ApiCall& call) {
  MUSTER_TRY(JobQuery query, api::job_query_from_parameters(call.request.query));
  if (query.project) MUSTER_CHECK(sight.project(*query.project, access::Role::kViewer));
  return query;
}

/// A page is kept in memory until the client has read it, so a page of large jobs has fewer of
/// them, but at least one. Returns whether jobs were left off.
bool leave_off_what_is_too_much(std::vector<const Job*>& jobs) {
  size_t size = 0;
  size_t count = 0;
  while (count < jobs.size() &&
         (count == 0 || size + job::text_size(jobs[count]->spec) <= kMostBytes)) {
    size += job::text_size(jobs[count++]->spec);
  }
  const bool too_much = count < jobs.size();
  jobs.resize(count);
  return too_much;
}

std::string next_of(const JobQuery& query, const std::vector<Entry>& entries, bool has_next) {
  return has_next ? cursor_text(query.order, entries.back().place) : "";
}

RouteAnswer list_jobs(const Controller& controller, const ApiCall& call) {
  const Sight sight(controller, call.who);
  MUSTER_TRY(const JobQuery query, query_of(sight, call));
  const auto limit = static_cast<size_t>(query.limit);
  Listing listing(controller, sight, query);
  std::vector<Entry> entries = listing.find(limit + 1, false);
  bool has_next = entries.size() > limit;
  if (has_next) entries.pop_back();

  std::vector<const Job*> jobs;
  for (const Entry& entry : entries) jobs.push_back(controller.jobs().with_id(entry.place.id));
  has_next = leave_off_what_is_too_much(jobs) || has_next;
  entries.resize(jobs.size());
  std::deque<Job> copies;  // elements keep their addresses
  for (const Job*& job : jobs) {
    std::optional<job::Progress> progress;
    if (!job::is_final(job->phase)) progress = controller.progress_of(*job);
    if (sight.sees_all() && !progress) continue;
    copies.push_back(sight.redacted(*job));
    copies.back().progress = std::move(progress);
    job = &copies.back();
  }
  return json_answer(
      200, api::job_page_to_json(jobs, next_of(query, entries, has_next), listing.counts()));
}

RouteAnswer list_rows(const Controller& controller, const ApiCall& call) {
  const Sight sight(controller, call.who);
  MUSTER_TRY(const JobQuery query, query_of(sight, call));
  const auto limit = static_cast<size_t>(query.limit);
  Listing listing(controller, sight, query);
  std::vector<Entry> entries = listing.find(limit + 1, true);
  const bool has_next = entries.size() > limit;
  if (has_next) entries.pop_back();
  api::RowPage page{.next = next_of(query, entries, has_next), .counts = listing.counts()};
  for (Entry& entry : entries) {
    page.rows.push_back(
        entry.row ? *std::move(entry.row)
                  : row_for(controller, sight, *controller.jobs().with_id(entry.place.id)));
  }
  return json_answer(200, api::row_page_to_json(page));
}

}  // namespace

void add_job_list_route(Router& router, Controller& controller) {
  router.add("GET", "/v1/jobs", Permission::kSignedIn,
             at_once([&controller](const ApiCall& call) { return list_jobs(controller, call); }));
  router.add("GET", "/v1/list", Permission::kSignedIn,
             at_once([&controller](const ApiCall& call) { return list_rows(controller, call); }));
}

}  // namespace muster::server
