// GET /v1/jobs: a page at a time, and no job is copied for it but where words have to be taken out,
// or it is told how far its program is. (Of jobs that have ended that would have to be read from
// files that nobody else reads any more: it is told where one job is asked for.)
#include <deque>
#include <optional>
#include <vector>

#include "api/job_query.h"
#include "job/text_size.h"
#include "server/answers.h"
#include "server/routes.h"
#include "server/sight.h"

namespace muster::server {

namespace {

using api::JobPlace;
using api::JobQuery;
using control::Controller;
using job::Job;
using Order = JobQuery::Order;

constexpr size_t kMostBytes = 4 << 20;  // of a page, about

/// Asked for each of 100,000 jobs.
bool sees(const Sight& sight, const Job& job) {
  return sight.sees_all() || sight.sees(job);
}

/// Those of the page, and one more where there is a next page.
std::vector<const Job*> by_time(const Controller& controller, const Sight& sight,
                                const JobQuery& query, size_t most) {
  std::vector<const Job*> jobs;
  std::optional<base::Time> after;
  if (!query.cursor.empty()) after = place_of_cursor(query.order, query.cursor)->submitted;
  controller.jobs().each_job(query.order == Order::kNewestFirst, after, [&](const Job& job) {
    if (matches(query, job) && sees(sight, job)) jobs.push_back(&job);
    return jobs.size() < most;
  });
  return jobs;
}

/// The same. Names that begin alike stand together, so no other is looked at.
std::vector<const Job*> by_name(const Controller& controller, const Sight& sight,
                                const JobQuery& query, size_t most) {
  const std::string prefix = query.prefix.value_or("");
  JobPlace from{.name = prefix};
  if (!query.cursor.empty()) from = *place_of_cursor(query.order, query.cursor);
  std::vector<const Job*> jobs;
  controller.jobs().each_job_from(from.name, from.project, [&](const Job& job) {
    if (!job.spec.name.starts_with(prefix)) return false;
    const bool was_shown =
        !query.cursor.empty() && job.spec.name == from.name && job.spec.project == from.project;
    if (!was_shown && matches(query, job) && sees(sight, job)) jobs.push_back(&job);
    return jobs.size() < most;
  });
  return jobs;
}

/// A page is held whole until its reader has taken it, so that of large jobs it holds fewer; one in
/// any case, or nobody would get on. Whether some were left off.
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

std::string job_page(const Controller& controller, const Sight& sight, std::vector<const Job*> jobs,
                     const std::string& next) {
  std::deque<Job> copies;  // stay where they are
  for (const Job*& job : jobs) {
    std::optional<job::Progress> progress;
    if (!job::is_final(job->phase)) progress = controller.progress_of(*job);
    if (sight.sees_all() && !progress) continue;
    job = &copies.emplace_back(sight.redacted(*job));
    copies.back().progress = std::move(progress);
  }
  return api::job_page_to_json(jobs, next);
}

Answer list_jobs(const Controller& controller, const Call& call) {
  MUSTER_TRY(const JobQuery query, api::job_query_from_parameters(call.request.query));
  const Sight sight(controller, call.who);
  if (query.project) MUSTER_CHECK(sight.project(*query.project, access::Role::kViewer));
  const auto limit = static_cast<size_t>(query.limit);
  std::vector<const Job*> jobs = query.order == Order::kByName
                                     ? by_name(controller, sight, query, limit + 1)
                                     : by_time(controller, sight, query, limit + 1);
  std::string next;
  bool has_next = jobs.size() > limit;
  if (has_next) jobs.pop_back();
  has_next = leave_off_what_is_too_much(jobs) || has_next;
  if (has_next) {
    next = cursor_text(query.order, place_of(query.order, *jobs.back()));
  }
  return json_answer(200, job_page(controller, sight, std::move(jobs), next));
}

}  // namespace

void add_job_list_route(Router& router, Controller& controller) {
  router.add("GET", "/v1/jobs", Permission::kSignedIn,
             at_once([&controller](const Call& call) { return list_jobs(controller, call); }));
}

}  // namespace muster::server
