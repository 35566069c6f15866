#include "engine/slurm/allocations.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "engine/slurm/allocation_news.h"
#include "engine/slurm/submission.h"

namespace muster::engine::slurm {

using base::Error;
using base::ErrorCode;

namespace {

/// The Slurm jobs that the gang has and had.
std::vector<uint64_t> all_jobs_of(const HeldGang& gang) {
  auto jobs = gang.job.former;
  if (gang.job.id != 0) jobs.push_back(gang.job.id);
  return jobs;
}

}  // namespace

// --- requesting

void Allocations::request(const GangId& gang, AllocationRequest request) {
  if (const GangPointer held = gangs_.find(gang)) {
    if (held->is_unreadable) give_back(gang);
    if (gangs_.find(gang) != held) return request_new(gang, std::move(request), all_jobs_of(*held));
    return resume(held, std::move(request));
  }
  request_new(gang, std::move(request), {});
}

/// `former`: Slurm jobs of the same gang, which may still be listed for some time.
void Allocations::request_new(const GangId& gang, AllocationRequest request,
                              std::vector<uint64_t> former) {
  auto submission = submission_for(request, options_);
  if (submission && callback_ && !*callback_) submission = callback_->error();
  if (!submission) return reports_.announce(gang, AllocationRefused{submission.error()});
  if (take_over(gang, request, *submission)) return;
  GangRecord record{
      .common = {.key = random_.bytes<std::tuple_size_v<rsh::Key>>(), .seats = seats_for(request)},
      .job = {.submitted_attempt = gang.attempt,
              .comment = comment_for(options_.owner, gang),
              .shape = shape_of(*submission),
              .former = std::move(former)}};
  const GangPointer held = gangs_.add(gang, std::move(record), Stage::kUnsaved);
  queue_.changed();
  held->request = std::move(request);
  held->is_awaited = true;
  save_and_submit(held);
}

/// The gang is known: from an earlier server, or from an allocation that was given back.
void Allocations::resume(const GangPointer& gang, AllocationRequest request) {
  if (gang->record.given_back) {
    gang->next_request = std::move(request);
    return reports_.waits(gang, wait_for_earlier(gang->job.id));
  }
  gang->request = std::move(request);
  gang->is_awaited = true;
  gang->is_announced = false;
  gang->reported_waits.reset();
  if (gang->stage == Stage::kQueued) {
    reports_.waits(gang, wait_submitted(gang->job.id));
    if (gang->listed) {
      const ListedJob listed = *gang->listed;
      listed_(gang, listed);
    }
  }
  queue_.poll_soon();
  reports_.post([this, gang] { report_if_complete(gang); });
}

/// Takes over the job of an earlier attempt that Slurm has queued again: it keeps its age, and with
/// that its place in the queue.
bool Allocations::take_over(const GangId& gang, const AllocationRequest& request,
                            const Submission& submission) {
  const GangPointer before = gangs_.requeued_before(gang);
  if (before == nullptr || before->job.shape != shape_of(submission)) return false;
  GangRecord record{.common = before->record, .job = before->job};
  record.common.seats = seats_for(request);
  if (before->listed) {
    record.job.restarts = before->listed->restarts;
  } else {
    ++record.job.restarts;
  }
  record.common.given = record.common.queued_again = false;
  record.common.taken.reset();
  const GangPointer held = gangs_.add(gang, std::move(record), Stage::kQueued);
  queue_.changed();
  held->request = request;
  held->is_awaited = true;
  held->listed = before->listed;
  before->record.queued_again = false;
  before->stage = Stage::kOver;
  if (auto made = base::make_private_folder(gangs_.attempt_folder(gang)); !made) {
    base::log_error(made.error().what);
  }
  gangs_.save(held);
  if (held->listed) {
    const ListedJob listed = *held->listed;
    listed_(held, listed);
  } else {
    reports_.waits(held, wait_submitted(held->job.id));
  }
  queue_.poll_soon();
  return true;
}

void Allocations::save_and_submit(const GangPointer& gang) {
  gangs_.save_durably(gang, [this, gang](Result<void> saved) {
    if (!saved) return refuse(gang, std::move(saved).error());
    gang->stage = Stage::kUnsent;
    if (gang->record.given_back) return forget(gang);
    submit(gang);
  });
}

/// Adds the parts that depend on the gang: the comment, the script and its environment.
Submission Allocations::complete(const HeldGang& gang, Submission submission) const {
  const node::CallbackSite& site = **callback_;
  const node::NodeBrief brief{.caller = {{gang.gang.job_id, gang.job.submitted_attempt}},
                              .key = gang.record.key,
                              .hosts = site.hosts,
                              .port = site.hub->port(),
                              .sharing = options_.sharing,
                              .folder = options_.folder.string(),
                              .mark = site.mark,
                              .nonce = site.nonce,
                              .linger = options_.linger};
  const bool may_share = options_.sharing != node::Sharing::kNo;
  submission.comment = gang.job.comment;
  submission.script =
      node_script(brief, submission.components, guests_of(*gang.request), options_.node_programs(),
                  may_share ? gangs_.attempt_folder(gang.gang).string() : "");
  submission.environment = script_environment(base::current_environment());
  return submission;
}

/// Slurm refuses a job that names a node which was removed from the cluster. If Slurm lists no nodes
/// to this user, all names stay. False: Slurm has not answered yet, as when the server has just
/// started.
bool Allocations::drop_unknown_nodes(std::vector<std::string>& names) const {
  const std::vector<Node>& nodes = cluster_.list();
  if (names.empty()) return true;
  std::erase_if(names, [&](const std::string& name) {
    return !nodes.empty() && std::none_of(nodes.begin(), nodes.end(),
                                          [&](const Node& node) { return node.name == name; });
  });
  return cluster_.has_answered();
}

void Allocations::submit(const GangPointer& gang) {
  if (gang->stage != Stage::kUnsent || !gang->request || gang->record.given_back) return;
  if (queue_.away_since()) return reports_.waits(gang, away_waits(*gang));
  if (!drop_unknown_nodes(gang->request->avoided_nodes)) {  // again after the next listing
    return reports_.waits(gang, wait_for_nodes());
  }
  auto submission = submission_for(*gang->request, options_);
  if (submission && !*callback_) submission = callback_->error();
  if (!submission) return refuse(gang, std::move(submission).error());
  gang->retry.reset();
  gang->stage = Stage::kSending;
  client_.submit(complete(*gang, *std::move(submission)),
                 [this, gang](Result<uint64_t> answer) { submitted(gang, std::move(answer)); });
}

void Allocations::submitted(const GangPointer& gang, Result<uint64_t> answer) {
  gang->submitted_at_poll = queue_.polls();
  queue_.changed();
  if (answer) {
    if (gang->stage == Stage::kSending) gang->stage = Stage::kQueued;
    // A muster-node may have called before this answer.
    if (gang->job.id == 0) gang->job.id = *answer;
    gangs_.save(gang);
    if (gang->record.given_back) return end_job(gang);
    if (gang->stage != Stage::kQueued) return;
    reports_.waits(gang, wait_submitted(*answer));
    return report_if_complete(gang);
  }
  if (gang->stage != Stage::kSending) return;
  if (answer.error().code == ErrorCode::kTimeout) {
    gang->stage = Stage::kUnsure;
    reports_.waits(gang, wait_unsure());
    return queue_.poll_soon();
  }
  gang->stage = Stage::kUnsent;
  if (gang->record.given_back) return forget(gang);
  switch (answer.error().code) {
    case ErrorCode::kUnavailable:
      queue_.controller_away(answer.error());
      return reports_.waits(gang, away_waits(*gang));
    case ErrorCode::kExhausted:
      reports_.waits(gang, wait_rejected_for_now(answer.error().what));
      return submit_later(gang);
    default:
      return refuse(gang, std::move(answer).error());
  }
}

void Allocations::submit_later(const GangPointer& gang) {
  gang->retry = loop_.after(options_.slow_poll, [this, weak = std::weak_ptr(gang)] {
    if (const GangPointer still = weak.lock()) submit(still);
  });
}

void Allocations::submit_all_unsent() {
  for (const GangPointer& gang : gangs_.all()) {
    if (gang->stage == Stage::kUnsent && !gang->retry) submit(gang);
  }
}

void Allocations::refuse(const GangPointer& gang, Error error) {
  if (!gang->record.given_back) reports_.announce(gang->gang, AllocationRefused{std::move(error)});
  forget(gang);
}

AllocationPending Allocations::away_waits(const HeldGang& gang) const {
  return wait_for_controller(gang.reported_waits.value_or(AllocationPending{}), gang.job.id,
                             *queue_.away_since(), queue_.away_why());
}

// --- reporting

/// An elastic gang may have fewer tasks than requested: as many as Slurm's nodes have seats. Guests
/// share the first node, and all other components have nodes of their own. One component is elastic:
/// the workers.
size_t Allocations::expected_tasks(const HeldGang& gang) const {
  const auto& seats = gang.record.seats;
  const auto may_be_missing = [](const Seat& seat) { return seat.may_be_missing; };
  const auto elastic = std::find_if(seats.begin(), seats.end(), may_be_missing);
  if (elastic == seats.end()) return seats.size();
  if (!gang.listed || gang.listed->nodes.empty()) return seats.size();
  std::map<int, size_t> tasks_of;  // by component
  for (const Seat& seat : seats) ++tasks_of[seat.component];
  const bool has_guests = gang.request && guests_of(*gang.request) > 0;
  const int guests = has_guests ? tasks_of.rbegin()->first : -1;  // the last component
  if (elastic->component == guests) return seats.size();
  const auto each = static_cast<size_t>(std::max(options_.tasks_per_node, 1));
  size_t fixed_tasks = 0;
  size_t fixed_nodes = 0;
  for (const auto& [component, tasks] : tasks_of) {
    if (component == elastic->component) continue;
    fixed_tasks += tasks;
    if (component != guests) fixed_nodes += (tasks + each - 1) / each;
  }
  const size_t nodes = gang.listed->nodes.size();
  const size_t elastic_nodes = nodes - std::min(nodes, fixed_nodes);
  return fixed_tasks + std::min(tasks_of[elastic->component], elastic_nodes * each);
}

void Allocations::report_if_complete(const GangPointer& gang) {
  if (gang->is_announced || !gang->is_awaited || gang->record.given_back || gang->record.taken) {
    return;
  }
  if (gang->stage != Stage::kQueued && gang->stage != Stage::kAllocated) return;
  size_t present = 0;
  for (const auto& [name, task] : gang->tasks) {
    if (task->line != nullptr) {
      ++present;
    } else if (!gang->seat_of(*task).may_be_missing) {
      return;
    }
  }
  if (present < expected_tasks(*gang)) return queue_.poll_soon();
  gang->stage = Stage::kAllocated;
  gang->allocated_at_poll = queue_.polls();
  gang->is_announced = true;
  gang->record.given = true;
  gang->callback_deadline.reset();
  queue_.changed();
  gangs_.save(gang);
  reports_.announce(gang->gang,
                    AllocationGranted{.places = places_of(*gang), .slurm_job = gang->job.id});
}

/// The tasks of a node share its GPUs, in the order of the job.
std::vector<AllocatedPlace> Allocations::places_of(const HeldGang& gang) const {
  std::vector<AllocatedPlace> places;
  std::map<std::string, size_t> taken;
  for (const Seat& seat : gang.record.seats) {
    const auto& task = *gang.tasks.at(seat.task);
    if (task.line == nullptr) continue;
    AllocatedPlace place{.task = seat.task, .node = seat.node, .devices = {}};
    size_t& next = taken[seat.node];
    for (int i = 0; i < seat.gpus; ++i, ++next) {
      place.devices.push_back(next < task.gpu_indices.size() ? task.gpu_indices[next]
                                                             : static_cast<int>(next));
    }
    places.push_back(std::move(place));
  }
  return places;
}

// --- giving back

void Allocations::give_back(const GangId& name) {
  const GangPointer gang = gangs_.find(name);
  if (gang == nullptr) return;
  gang->is_awaited = false;
  gang->next_request.reset();
  if (gang->record.given_back) return;
  gang->record.given_back = true;
  gang->callback_deadline.reset();
  starter_.give_up(gang,
                   {.code = ErrorCode::kUnavailable, .what = "its allocation was given back"});
  gangs_.save(gang);
  switch (gang->stage) {
    case Stage::kUnsaved:  // its record is being written
    case Stage::kSending:  // its answer will have the id to cancel
      return;
    case Stage::kUnsure:
      return queue_.poll_soon();
    case Stage::kUnsent:
    case Stage::kOver:
      return forget(gang);
    case Stage::kQueued:
    case Stage::kAllocated:
      if (gangs_.is_taken_over(*gang)) return forget(gang);
      return end_job(gang);
  }
}

void Allocations::end_job(const GangPointer& gang) {
  bool ends_by_itself =
      gang->stage == Stage::kAllocated && !gang->record.queued_again && !gang->is_unreadable;
  for (const auto& [name, task] : gang->tasks) {
    const Seat& seat = gang->seat_of(*task);
    if (seat.left || seat.node.empty()) continue;
    const bool runs = seat.started && !task->end;
    if (runs || task->line == nullptr) ends_by_itself = false;
    if (task->line == nullptr) continue;
    if (runs) task->line->send(node::StopOrder{StopMode::kNow});
    if (!seat.started) tasks_.dismiss(gang, task);
  }
  queue_.changed();
  if (!ends_by_itself) return cancel(gang);
  gang->released_since = Steady::now();
  queue_.schedule();
}

void Allocations::cancel(const GangPointer& gang) {
  if (gang->job.id == 0) return;
  gang->is_cancelled = false;
  queue_.cancel(gang->job.id);
}

void Allocations::forget(const GangPointer& gang) {
  if (gangs_.find(gang->gang) != gang) return;
  gang->stage = Stage::kOver;
  gang->retry.reset();
  gang->callback_deadline.reset();
  for (const auto& [name, task] : gang->tasks) {
    task->line.reset();
    task->timer.reset();
  }
  queue_.do_not_cancel(gang->job.id);
  gangs_.remove(gang);
  if (!gang->next_request) return;
  request_new(gang->gang, *std::move(gang->next_request), all_jobs_of(*gang));
}

}  // namespace muster::engine::slurm
