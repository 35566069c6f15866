// GET /v1/jobs and GET /v1/list: one page of the jobs that match a query, as whole documents or as
// rows. A listing in the order of submission or of names reads the index of jobs and stops after a
// page; every other order, and a count, examines all jobs, with several threads if there are many.
// The table keeps the counts of all jobs, so a caller that sees all of them and filters none gets
// those.
// So does a query that has found too few jobs for a page among the first ones.
//
// Jobs are copied only if parts must be removed for the caller, or if their progress is added.
// (Ended jobs have no progress here, because it would have to be read from files; the page of a
// single job has it.)

#include <algorithm>
#include <deque>
#include <iterator>
#include <limits>
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
#include "server/listed_objects.h"
#include "server/router.h"
#include "server/routes.h"
#include "server/sight.h"

namespace muster::server {

namespace {

using api::JobCounts;
using api::JobOrder;
using api::JobPlace;
using api::JobPlaceView;
using api::JobQuery;
using base::Result;
using control::Controller;
using job::Job;
using job::JobFacts;
using job::Phase;

/// Called for each of a million jobs.
bool sees(const Sight& sight, const JobFacts& job) {
  return sight.sees_all() || sight.sees(job);
}

/// A job or another object of the page. Place::id is that of the job.
struct Entry {
  JobPlace place;
  std::optional<api::JobRow> row = {};  ///< of another object
};

/// What one thread examines, and what it has found.
struct Share {
  Share(const Controller& controller, const access::Identity& who, const JobQuery& query)
      : sight(controller, who), filter(query) {}

  Sight sight;
  api::JobFilter filter;
  std::vector<Entry> entries = {};
  JobCounts counts = {};
};

void add_counts(JobCounts& counts, const JobCounts& more) {
  counts.all += more.all;
  counts.queued += more.queued;
  counts.starting += more.starting;
  counts.running += more.running;
  counts.succeeded += more.succeeded;
  counts.failed += more.failed;
  counts.stopped += more.stopped;
}

/// The jobs and objects that a query finds for a caller.
class Listing {
 public:
  Listing(const Controller& controller, const access::Identity& who, const JobQuery& query)
      : controller_(controller), who_(who), query_(query), own_(controller, who, query) {
    if (!query.cursor.empty()) from_ = place_of_cursor(query.order, query.cursor);
    now_ = from_ && query.order.by == api::JobColumn::kDuration ? from_->now
                                                                : base::SystemClock().now();
  }

  /// The entries of the page, in order, and one more if there is a next page.
  std::vector<Entry> find(size_t most, bool with_objects) {
    counts_known_ = query_.count && own_.sight.sees_all() && api::takes_every_job(query_);
    if (counts_known_) take_known_counts();
    const bool counts_all = query_.count && !counts_known_;
    if (!counts_all && query_.order == JobOrder::kByName) {
      by_name(most);
    } else if (!counts_all && query_.order.by == api::JobColumn::kSubmitted) {
      by_time(most);
    } else {
      examine_all(most);
    }
    if (with_objects) add_objects();
    std::vector<Entry>& entries = own_.entries;
    std::sort(entries.begin(), entries.end(), [this](const Entry& left, const Entry& right) {
      return comes_before(query_.order, left.place, right.place);
    });
    if (entries.size() > most) entries.resize(most);
    return std::move(entries);
  }

  std::optional<JobCounts> counts() const {
    return query_.count ? std::optional(own_.counts) : std::nullopt;
  }

 private:
  /// The table of jobs keeps the counts of all jobs.
  void take_known_counts() {
    const control::PhaseCounts& known = controller_.jobs().counts(!query_.top);
    for (const Phase phase : job::kAllPhases) {
      const int64_t count = job::count_of_phase(known, phase);
      job::count_of_phase(own_.counts, phase) = count;
      const std::vector<Phase>& asked = query_.phases;
      const bool is_asked =
          asked.empty() || std::find(asked.begin(), asked.end(), phase) != asked.end();
      if (is_asked) own_.counts.all += count;
    }
  }

  bool is_after_cursor(const JobPlaceView& place) const {
    return !from_ || comes_before(query_.order, *from_, place);
  }

  void add(const JobFacts& job) {
    if (!own_.filter.takes(job) || !sees(own_.sight, job)) return;
    const JobPlaceView place = place_of(query_.order, job, now_);
    if (is_after_cursor(place)) own_.entries.push_back({.place = copy_of(place)});
  }

  void by_time(size_t most) {
    const bool newest_first = query_.order.descending;
    std::optional<base::Time> after;
    // Inclusive: the cursor may be that of another object, made when a job was submitted.
    constexpr std::chrono::nanoseconds kTick(1);
    if (from_ && from_->submitted > base::Time::min() && from_->submitted < base::Time::max()) {
      after = newest_first ? from_->submitted + kTick : from_->submitted - kTick;
    }
    size_t left = jobs_in_order();
    controller_.jobs().each_job(
        newest_first, after,
        [&](const JobFacts& job) {
          add(job);
          return own_.entries.size() < most && --left > 0;
        },
        texts_read());
    if (left == 0) examine_instead(most);
  }

  /// Names with the same prefix are adjacent, so no other names are examined.
  void by_name(size_t most) {
    const std::string prefix = query_.prefix.value_or("");
    const JobPlace from = from_.value_or(JobPlace{.text = prefix});
    size_t left = jobs_in_order();
    controller_.jobs().each_job_from(from.text, from.project, [&](const JobFacts& job) {
      if (!job.name.starts_with(prefix)) return false;
      add(job);
      return own_.entries.size() < most && --left > 0;
    });
    if (left == 0) examine_instead(most);
  }

  /// How many jobs are visited in order before all of them are examined.
  size_t jobs_in_order() const {
    return parts() > 1 ? kJobsOfThread : std::numeric_limits<size_t>::max();
  }

  /// The query finds few jobs, which several threads find sooner.
  void examine_instead(size_t most) {
    own_.entries.clear();
    examine_all(most);
  }

  /// The number of threads that examine all jobs.
  size_t parts() const { return parts_of_jobs(controller_); }

  void examine_all(size_t most) {
    if (query_.prefix && examine_names(most)) return;
    const size_t parts = this->parts();
    std::deque<Share> shares;  // of the other threads
    for (size_t part = 1; part < parts; ++part) shares.emplace_back(controller_, who_, query_);
    examine_parts(parts, [&](size_t part) {
      examine(part == 0 ? own_ : shares[part - 1], part, parts, most);
    });
    for (Share& share : shares) {
      std::move(share.entries.begin(), share.entries.end(), std::back_inserter(own_.entries));
      add_counts(own_.counts, share.counts);
    }
  }

  void examine(Share& share, size_t part, size_t parts, size_t most) const {
    // Equal jobs follow newest first: examined in that order, none displaces a kept one.
    const bool newest_first = query_.order != JobOrder::kOldestFirst;
    const bool by_time = query_.order.by == api::JobColumn::kSubmitted;
    controller_.jobs().each_job_of_part(newest_first, part, parts, texts_read(),
                                        [&](const JobFacts& job) {
                                          take(share, job, most, by_time);
                                          return true;
                                        });
  }

  /// Examines the jobs whose names begin with the prefix, and no others. Returns false if they are more
  /// than a fiftieth of all jobs: to examine all is faster then, since a visit by name costs more.
  bool examine_names(size_t most) {
    constexpr size_t kPartOfJobs = 50;
    size_t left = controller_.jobs().size() / kPartOfJobs;
    controller_.jobs().each_job_from(*query_.prefix, "", [&](const JobFacts& job) {
      if (!job.name.starts_with(*query_.prefix) || left == 0) return false;
      take(own_, job, most, false);
      return --left > 0;
    });
    if (left > 0) return true;
    own_.entries.clear();
    own_.counts = {};
    return false;
  }

  /// Keeps the first `most` entries after the cursor, as a heap whose top is the last of them.
  /// `in_order`: each job comes after those that were taken before.
  void take(Share& share, const JobFacts& job, size_t most, bool in_order) const {
    const bool is_found = counts_known_
                              ? share.filter.takes(job)
                              : is_counted(share, job, [&] { return sees(share.sight, job); });
    std::vector<Entry>& entries = share.entries;
    if (!is_found || (in_order && entries.size() >= most)) return;
    const JobPlaceView place = place_of(query_.order, job, now_);
    if (!is_after_cursor(place)) return;
    const auto earlier = [this](const Entry& left, const Entry& right) {
      return comes_before(query_.order, left.place, right.place);
    };
    if (entries.size() == most) {
      if (!comes_before(query_.order, place, entries.front().place)) return;
      std::pop_heap(entries.begin(), entries.end(), earlier);
      entries.pop_back();
    }
    entries.push_back({.place = copy_of(place)});
    std::push_heap(entries.begin(), entries.end(), earlier);
  }

  /// What the query reads of each job.
  job::FactTexts texts_read() const {
    if (!query_.text.empty()) return job::FactTexts::kSearched;
    const api::JobColumn by = query_.order.by;
    if (by == api::JobColumn::kPriority || by == api::JobColumn::kGpus) return job::FactTexts::kAll;
    if (query_.prefix || by == api::JobColumn::kName) return job::FactTexts::kName;
    return query_.labels.empty() ? job::FactTexts::kNone : job::FactTexts::kLabels;
  }

  /// Whether the query finds it; counts it.
  template <class Seen>
  bool is_counted(Share& share, const JobFacts& job, const Seen& seen) const {
    if (!share.filter.takes_apart_from_phase(job)) return false;
    const bool takes_phase = share.filter.takes_phase(job);
    if (!takes_phase && !query_.count) return false;
    if (!seen()) return false;
    if (job.has_phase) ++job::count_of_phase(share.counts, job.phase);
    if (takes_phase) ++share.counts.all;
    return takes_phase;
  }

  void add_objects() {
    each_listed_object(controller_, own_.sight, [&](const ListedObject& object) {
      if (!is_counted(own_, object.listed, [] { return true; })) return;
      const JobPlaceView place = place_of(query_.order, object.listed, now_);
      if (!is_after_cursor(place)) return;
      own_.entries.push_back({.place = copy_of(place), .row = object.row()});
    });
  }

  const Controller& controller_;
  const access::Identity& who_;
  const JobQuery& query_;
  Share own_;  ///< of the loop's thread; in the end, with the others' findings
  std::optional<JobPlace> from_;
  base::Time now_;
  bool counts_known_ = false;  ///< the jobs are counted; objects are not
};

Result<JobQuery> query_of(const Sight& sight, const ApiCall& call) {
  MUSTER_TRY(JobQuery query, api::job_query_from_parameters(call.request.query));
  if (query.project) MUSTER_CHECK(sight.project(*query.project, access::Role::kViewer));
  return query;
}

std::string next_of(const JobQuery& query, const std::vector<Entry>& entries, bool has_next) {
  return has_next ? cursor_text(query.order, entries.back().place) : "";
}

RouteAnswer list_jobs(const Controller& controller, const ApiCall& call) {
  const Sight sight(controller, call.who);
  MUSTER_TRY(const JobQuery query, query_of(sight, call));
  const auto limit = static_cast<size_t>(query.limit);
  Listing listing(controller, call.who, query);
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
  Listing listing(controller, call.who, query);
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
