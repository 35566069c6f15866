// GET /v1/log-search: the lines of many jobs' logs in which a pattern is found, as a stream of events.
//
// Jobs are read one after another, newest first, so a search holds one log open and answers as it
// goes. What a caller may see is checked again for each job, because a search may last minutes.

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/job_query.h"
#include "api/job_rows.h"
#include "api/log_stream.h"
#include "api/query_parameters.h"
#include "api/routes.h"
#include "api/wire.h"
#include "base/units.h"
#include "logs/log_follower.h"
#include "server/event_stream.h"
#include "server/listed_objects.h"
#include "server/router.h"
#include "server/routes.h"
#include "server/sight.h"

namespace muster::server {

namespace {

using base::Result;
using control::Controller;

struct LogsSearch {
  api::JobQuery jobs;  ///< its order, limit and cursor are not used
  std::string grep;    ///< a LogPattern
  int hits = 20;       ///< of each job, the last ones
  int most_jobs = 1000;
};

constexpr int kMostHits = 200;
constexpr int kMostSearched = 10'000;

/// Takes the parameters of the search out of `parameters`; the others filter jobs.
class SearchParameters {
 public:
  explicit SearchParameters(const api::Parameters& parameters) {
    for (const auto& [name, value] : parameters) {
      if (name == "grep") {
        search_.grep = value;
      } else if (name == "hits") {
        take_number(name, value, kMostHits, search_.hits);
      } else if (name == "jobs") {
        take_number(name, value, kMostSearched, search_.most_jobs);
      } else {
        of_jobs_.add(name, value);
      }
    }
  }

  Result<LogsSearch> search() && {
    if (search_.grep.empty()) faults_.push_back({.field = "grep", .what = "is missing"});
    if (!faults_.empty()) return api::wrong_query("the search is invalid", std::move(faults_));
    MUSTER_CHECK(job::LogPattern::compile(search_.grep));
    MUSTER_TRY(search_.jobs, api::job_query_from_parameters(of_jobs_));
    return std::move(search_);
  }

 private:
  void take_number(const std::string& name, const std::string& text, int most, int& into) {
    const auto number = base::number_of<int>(text);
    if (number && *number >= 1 && *number <= most) {
      into = *number;
    } else {
      faults_.push_back({.field = name,
                         .what = "must be a number from 1 to " + std::to_string(most) + ", not " +
                                 api::in_quotes(text)});
    }
  }

  LogsSearch search_;
  api::Parameters of_jobs_;
  std::vector<base::Fault> faults_;
};

/// The jobs whose logs are searched, newest first.
struct SearchedJobs {
  std::vector<std::string> ids;
  bool has_more = false;  ///< older jobs are left out
};

bool is_searched(const job::JobFacts& job, const api::JobFilter& filter, const Sight& sight) {
  const bool has_log = job.attempt > 0;
  return has_log && filter.takes(job) && (sight.sees_all() || sight.sees(job));
}

/// The texts that the filter reads of each job.
job::FactTexts texts_of_filter(const api::JobQuery& query) {
  if (!query.text.empty()) return job::FactTexts::kSearched;
  if (query.prefix) return job::FactTexts::kName;
  return query.labels.empty() ? job::FactTexts::kNone : job::FactTexts::kLabels;
}

/// The newest jobs, at most `most`, for a filter that takes few of them.
std::vector<std::string> searched_of_all(const Controller& controller, const Sight& sight,
                                         const LogsSearch& search, size_t most) {
  const size_t parts = parts_of_jobs(controller);
  std::vector<std::vector<std::string>> found(parts);
  examine_parts(parts, [&](size_t part) {
    const Sight sight_of_part = sight;
    const api::JobFilter filter(search.jobs);
    controller.jobs().each_job_of_part(true, part, parts, texts_of_filter(search.jobs),
                                       [&](const job::JobFacts& job) {
                                         if (is_searched(job, filter, sight_of_part))
                                           found[part].emplace_back(job.id);
                                         return found[part].size() < most;
                                       });
  });
  std::vector<std::string> ids;
  // The last part has the newest jobs.
  for (auto part = found.rbegin(); part != found.rend(); ++part) {
    const size_t count = std::min(part->size(), most - ids.size());
    ids.insert(ids.end(), part->begin(), part->begin() + static_cast<ptrdiff_t>(count));
  }
  return ids;
}

SearchedJobs jobs_to_search(const Controller& controller, const Sight& sight,
                            const LogsSearch& search) {
  // One more shows whether older jobs are left out.
  const auto most = static_cast<size_t>(search.most_jobs) + 1;
  const size_t parts = parts_of_jobs(controller);
  const api::JobFilter filter(search.jobs);
  SearchedJobs found;
  size_t left = parts > 1 ? kJobsOfThread : std::numeric_limits<size_t>::max();
  controller.jobs().each_job(
      true, std::nullopt,
      [&](const job::JobFacts& job) {
        if (is_searched(job, filter, sight)) found.ids.emplace_back(job.id);
        return found.ids.size() < most && --left > 0;
      },
      texts_of_filter(search.jobs));
  if (left == 0) found.ids = searched_of_all(controller, sight, search, most);
  found.has_more = found.ids.size() == most;
  if (found.has_more) found.ids.pop_back();
  return found;
}

/// `hits` events, a `progress` event now and then, and `end`.
class LogsSearchStream : public EventStream {
 public:
  LogsSearchStream(StreamLife life, Controller& controller, access::Identity who,
                   const LogsSearch& search, SearchedJobs jobs)
      : EventStream(std::move(life)),
        controller_(controller),
        who_(std::move(who)),
        most_hits_(static_cast<size_t>(search.hits)),
        jobs_(std::move(jobs)) {
    query_.grep = search.grep;
    // One more shows whether hits are left out.
    query_.tail = search.hits + 1;
    // They pass every pattern, and would take the places of hits.
    query_.notices = false;
  }

 protected:
  std::optional<http::BodyPiece> next() override {
    if (is_over_) return http::BodyPiece(std::nullopt);
    std::string text;
    if (follower_ != nullptr && is_read_) finish(text);
    if (follower_ == nullptr && !open()) {
      is_over_ = true;
      http::append_event(text, api::kEndEvent, progress());
      return http::BodyPiece(std::move(text));
    }
    if (!is_pulled_) pull_records();
    if (text.empty()) return std::nullopt;
    return http::BodyPiece(std::move(text));
  }

 private:
  static constexpr size_t kProgressEvery = 25;

  /// Opens the log of the next job that the caller still sees. False: all jobs are searched.
  bool open() {
    const Sight sight(controller_, who_);
    for (; searched_ < jobs_.ids.size(); ++searched_) {
      const job::Job* const job = controller_.jobs().with_id(jobs_.ids[searched_]);
      if (job == nullptr || !sight.sees(*job)) continue;
      follower_ = controller_.follow_logs(job->id, query_);
      is_read_ = false;
      return true;
    }
    return false;
  }

  void pull_records() {
    is_pulled_ = true;
    follower_->pull([this](const job::LogBatch& batch, bool end) {
      is_pulled_ = false;
      is_read_ = end;
      for (job::LogRecord& record : job::records_of(batch)) records_.push_back(std::move(record));
      wake();
    });
  }

  /// Ends the search in one job.
  void finish(std::string& text) {
    const job::Job* const job = controller_.jobs().with_id(jobs_.ids[searched_]);
    const Sight sight(controller_, who_);
    if (job != nullptr && !records_.empty() && sight.sees(*job)) {
      http::append_event(text, "hits", hits_of(sight, *job));
    }
    records_.clear();
    follower_.reset();
    ++searched_;
    if (searched_ % kProgressEvery == 0) http::append_event(text, "progress", progress());
  }

  std::string hits_of(const Sight& sight, const job::Job& job) const {
    const size_t begin = records_.size() > most_hits_ ? records_.size() - most_hits_ : 0;
    std::string json = "{\"row\":" + api::row_to_json(row_for(controller_, sight, job));
    json += begin > 0 ? ",\"more\":true,\"records\":[" : ",\"more\":false,\"records\":[";
    for (size_t i = begin; i < records_.size(); ++i) {
      if (i > begin) json += ',';
      json += api::log_record_to_json(records_[i]);
    }
    return json + "]}";
  }

  std::string progress() const {
    return "{\"searched\":" + std::to_string(searched_) +
           ",\"jobs\":" + std::to_string(jobs_.ids.size()) +
           ",\"older\":" + (jobs_.has_more ? "true" : "false") + "}";
  }

  Controller& controller_;
  access::Identity who_;
  job::LogQuery query_;
  size_t most_hits_;
  SearchedJobs jobs_;
  size_t searched_ = 0;  ///< jobs of jobs_ that are done; then the one that is being read
  std::unique_ptr<logs::LogFollower> follower_;
  std::vector<job::LogRecord> records_;  ///< of that job
  bool is_pulled_ = false;
  bool is_read_ = false;
  bool is_over_ = false;
};

RouteAnswer search_logs(base::EventLoop& loop, Controller& controller, const ApiCall& call) {
  const Sight sight(controller, call.who);
  MUSTER_TRY(const LogsSearch search, SearchParameters(call.request.query).search());
  if (search.jobs.project) {
    MUSTER_CHECK(sight.project(*search.jobs.project, access::Role::kViewer));
  }
  return event_answer(std::make_shared<LogsSearchStream>(
      StreamLife{.loop = loop, .still_valid = call.still_valid}, controller, call.who, search,
      jobs_to_search(controller, sight, search)));
}

}  // namespace

void add_logs_search_route(Router& router, base::EventLoop& loop, Controller& controller) {
  router.add("GET", "/v1/log-search", Permission::kSignedIn,
             at_once([&loop, &controller](const ApiCall& call) {
               return search_logs(loop, controller, call);
             }));
}

}  // namespace muster::server
