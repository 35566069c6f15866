#include "control/gang_start.h"

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "control/gang_tasks.h"
#include "control/retry.h"
#include "control/schedule_view.h"

namespace muster::control {

using base::Error;
using base::ErrorCode;
using engine::ImageRequest;
using job::AttemptAbandoned;
using job::Job;
using job::Task;
using job::TaskPhase;

namespace {

// An engine reports far more often while it fetches an image.
constexpr std::chrono::seconds kProgressPause{1};

std::vector<const Task*> placed_tasks(const Job& job) {
  std::vector<const Task*> tasks;
  for (const Task& task : job.tasks) {
    if (!task.node.empty()) tasks.push_back(&task);
  }
  return tasks;
}

std::vector<std::string> distinct_images(const std::vector<ImageRequest>& requests) {
  std::set<std::string> images;
  for (const ImageRequest& request : requests) images.insert(request.image);
  return {images.begin(), images.end()};
}

std::chrono::milliseconds time_between(base::Time began, base::Time ended) {
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(ended - began);
  return std::max(took, std::chrono::milliseconds(0));
}

job::Failure failure_by(const Error& error) {
  return {.cause = job::Remark{error.what}, .advice = error.advice};
}

TasksByAddress addresses_of(const launch::GangPlan& plan) {
  TasksByAddress tasks;
  std::set<std::string> shared;
  for (const auto* stage : {&plan.first, &plan.then}) {
    for (const launch::TaskPlan& task : *stage) {
      if (!tasks.emplace(task.address, task.task).second) shared.insert(task.address);
    }
  }
  for (const std::string& address : shared) tasks.erase(address);
  return tasks;
}

}  // namespace

std::vector<std::string> tasks_of(const std::vector<ImageRequest>& images) {
  std::vector<std::string> tasks;
  for (const ImageRequest& image : images) tasks.push_back(image.task);
  return tasks;
}

Result<void> keep_facts(Result<std::vector<launch::ImageFacts>> facts,
                        const std::vector<std::string>& tasks, ImagesByTask& images) {
  if (!facts) return facts.error();
  if (facts->size() != tasks.size()) {
    return Error{.code = ErrorCode::kInternal, .what = "the engine did not describe every image"};
  }
  for (size_t i = 0; i < tasks.size(); ++i) images[tasks[i]] = std::move((*facts)[i]);
  return {};
}

void GangStart::begin() {
  const AttemptServices& services = context_.services;
  const Job& job = context_.job();
  // The attempt was stopped or evicted before it began.
  if (hooks_.is_ending() || job.stop_requested || job.eviction) return hooks_.finish_if_over();
  if (services.cluster.empty() && !services.book.still_has(places_of(job))) {
    hooks_.abandon(AttemptAbandoned{.why = AttemptAbandoned::Why::kNodeChanged}, {});
    return hooks_.finish_if_over();
  }
  if (services.engine.runs_images() && images_.empty()) return fetch_images();
  start_planned();
}

// --- images

void GangStart::fetch_images() {
  Job& job = context_.job();
  auto requests = context_.services.planner.images_of(job, placed_tasks(job));
  if (!requests) {
    hooks_.fail(failure_by(requests.error()));
    return hooks_.finish_if_over();
  }
  Fetch& fetch = fetch_.emplace();
  fetch.began = context_.services.clock.now();
  fetch.tasks = tasks_of(*requests);
  const job::LooksForImages looks{distinct_images(*requests)};
  job.reason = looks;
  context_.note(looks);
  context_.change();
  fetch.interest = context_.services.engine.prepare(
      context_.gang(), *std::move(requests), context_.guarded([this](const job::Fact& now) {
        if (!fetch_) return;
        fetch_->now = now;
        show_progress();
      }),
      context_.guarded([this](Result<std::vector<launch::ImageFacts>> facts) {
        images_fetched(std::move(facts));
      }));
}

/// Progress is announced now and then, and not stored: a new server fetches anew.
void GangStart::show_progress() {
  Job& job = context_.job();
  if (fetch_->pause || !fetch_->now || job.reason == job::Reason(*fetch_->now)) return;
  job.reason = *fetch_->now;
  context_.services.jobs.announce(job);
  fetch_->pause = context_.after(kProgressPause, [this] {
    if (!fetch_) return;
    fetch_->pause.reset();
    show_progress();
  });
}

void GangStart::images_fetched(Result<std::vector<launch::ImageFacts>> facts) {
  if (!fetch_) return;
  Job& job = context_.job();
  const Fetch fetch = *std::exchange(fetch_, std::nullopt);
  if (job.stop_requested || job.eviction) return hooks_.finish_if_over();
  if (const auto kept = keep_facts(std::move(facts), fetch.tasks, images_); !kept) {
    ++context_.services.metrics.engine_errors;
    const bool may_pass = kept.error().code == ErrorCode::kUnavailable;
    if (!may_pass || !try_again_later(kept.error())) hooks_.fail(failure_by(kept.error()));
    return hooks_.finish_if_over();
  }
  context_.note(job::ImagesThere{time_between(fetch.began, context_.services.clock.now())});
  job.reason = starting_reason(job);
  context_.change();
  begin();
}

void GangStart::stop_fetching() {
  if (!std::exchange(fetch_, std::nullopt)) return;
  context_.note(job::Notice{job::Notice::What::kImagesGivenUp});
  context_.soon([this] { hooks_.finish_if_over(); });
}

// --- tasks

void GangStart::start_planned() {
  Job& job = context_.job();
  const LaunchPlanner& planner = context_.services.planner;
  std::optional<launch::Reach> reach;
  if (grows_) reach = planner.reach_of_all_nodes();
  auto planned = planner.plan(job, reach, images_);
  if (!planned) {
    hooks_.fail(failure_by(planned.error()));
    return hooks_.finish_if_over();
  }
  if (grows_) hooks_.keep_seed({.seed = planned->seed, .reach = *reach});
  plan_ = std::move(planned->plan);
  tasks_by_address_ = addresses_of(plan_);
  if (!job.sealed_seed.empty()) context_.change();
  for (job::Fact& note : planner.notes_on_first_start(job)) context_.note(std::move(note));
  for (const launch::TaskPlan& task : plan_.first) unanswered_.insert(task.task);
  start_stage(plan_.first.empty() ? std::exchange(plan_.then, {}) : std::exchange(plan_.first, {}));
}

void GangStart::start_stage(std::vector<launch::TaskPlan> tasks) {
  stage_under_way_ = true;
  for (const launch::TaskPlan& plan : tasks) {
    Task& task = *find_task(context_.job(), plan.task);
    task.phase = TaskPhase::kStarting;
    task.started = context_.services.clock.now();
    for (const launch::ServedPort& served : plan.serves) served_.insert(served.port);
  }
  context_.services.engine.start(
      context_.gang(), std::move(tasks),
      context_.guarded([this](const Result<void>& started) { stage_started(started); }));
}

void GangStart::stage_started(const Result<void>& started) {
  Job& job = context_.job();
  stage_under_way_ = false;
  if (started) {
    if (!waits_for_workers()) hooks_.leader_started();
    // The gang was stopped while the engine started it.
    if (hooks_.is_ending()) hooks_.kill_all();
    // The timeout begins here: it does not include the time to bring the job's files to the nodes.
    if (!unanswered_.empty()) {
      timer_ = context_.after(job.spec.start_timeout, [this] { timed_out(); });
    }
    return hooks_.finish_if_over();  // all of it may have been lost meanwhile
  }
  ++context_.services.metrics.engine_errors;
  for (Task& task : job.tasks) {
    const bool of_this_stage =
        task.phase == TaskPhase::kStarting && leads(job, task) != waits_for_workers();
    if (of_this_stage) task.phase = TaskPhase::kPending;
  }
  const Error& error = started.error();
  // A gang that is ending has its reason already; the end only reached the engine during the start.
  if (hooks_.has_lost_allocation() || hooks_.is_ending()) {
    hooks_.kill_all();
    return hooks_.finish_if_over();
  }
  if (error.code == ErrorCode::kConflict && job.attempt - job.restarts < kStartAttempts) {
    hooks_.abandon(AttemptAbandoned{.why = AttemptAbandoned::Why::kNamesTaken, .error = error.what},
                   {});
  } else if (!job.stop_requested && !job.eviction) {
    // The engine of a node does not answer; or the machine has no process, memory or descriptor
    // left, which may be another program's doing, and for a moment only.
    const bool may_pass =
        error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kExhausted;
    if (!may_pass || !try_again_later(error)) hooks_.fail(failure_by(error));
  }
  hooks_.kill_all();
  hooks_.finish_if_over();
}

/// The job waits a moment, and may be placed elsewhere. Too many tries fail the job.
bool GangStart::try_again_later(const Error& error) {
  const auto pause = pause_before_another_start(context_.entry.unanswered_starts);
  if (!pause) return false;
  hooks_.abandon(AttemptAbandoned{.why = AttemptAbandoned::Why::kEngineAway, .error = error.what},
                 *pause);
  return true;
}

void GangStart::worker_is_up(const Task& task) {
  Job& job = context_.job();
  const bool was_awaited = unanswered_.erase(task.name) > 0;
  if (!was_awaited || !unanswered_.empty() || hooks_.is_ending() || job.eviction) {
    return context_.change();
  }
  timer_.reset();
  const Task& leader = job::deciding_task(job);
  if (context_.services.cluster.empty() && context_.services.nodes.is_silent(leader.node)) {
    hooks_.abandon(AttemptAbandoned{.why = AttemptAbandoned::Why::kNodeSilent, .node = leader.node},
                   {});
    context_.change();
    return hooks_.kill_all();
  }
  context_.note(job::EveryWorkerAnswers{leader.name});
  context_.change();
  start_stage(std::exchange(plan_.then, {}));
}

void GangStart::timed_out() {
  Job& job = context_.job();
  if (unanswered_.empty() || job.eviction) return;
  const Task& task = *find_task(job, *unanswered_.begin());
  std::vector<std::string> lines = last_lines(context_.services.engine, context_.gang(), task);
  hooks_.blame(task, lines);
  const char* const advice = lines.empty()
                                 ? "its sshd printed nothing: check that the launcher reaches the "
                                   "worker's address; a busy machine may need a longer "
                                   "--start-timeout"
                                 : "the lines above are from its sshd; a busy machine may need a "
                                   "longer --start-timeout";
  hooks_.fail({.task = task.name,
               .cause = job::NoSshAnswer{.task = task.name,
                                         .bound = job.spec.start_timeout,
                                         .others = static_cast<int>(unanswered_.size()) - 1},
               .advice = advice,
               .last_lines = std::move(lines)});
  hooks_.kill_all();
}

}  // namespace muster::control
