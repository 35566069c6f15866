// Room that is not needed any more. Where all muster-nodes of a Slurm job can be told so, it ends
// by itself, and Slurm's books keep how its tasks ended; else it is cancelled. Either way it is
// wanted until Slurm has nothing of it: a server that comes later goes on with it.
#include <algorithm>

#include "base/files.h"
#include "base/log.h"
#include "engine/slurm/slurm_engine_impl.h"

namespace muster::engine {

namespace fs = std::filesystem;

using slurm::HeldGang;
using slurm::Stage;
using slurm::Steady;

namespace {

/// For muster-nodes that were told to leave, and for Slurm to see that they did.
constexpr std::chrono::seconds kLeave{20};

}  // namespace

/// Another attempt has what this one had.
bool SlurmEngine::Impl::is_anothers(const HeldGang& gang) const {
  if (gang.record.slurm_job == 0) return false;
  for (auto each = gangs.lower_bound({gang.gang.job_id, 0});
       each != gangs.end() && each->first.job_id == gang.gang.job_id; ++each) {
    const HeldGang& other = *each->second;
    if (&other != &gang && other.record.slurm_job == gang.record.slurm_job &&
        !other.record.given_back && other.gang.attempt > gang.gang.attempt) {
      return true;
    }
  }
  return false;
}

void SlurmEngine::Impl::give_back(const Gang& name) {
  begin();
  const GangPointer gang = find(name);
  if (gang == nullptr) return;
  gang->wants_news = false;
  gang->again.reset();
  if (gang->record.given_back) return;
  gang->record.given_back = true;
  gang->call_back.reset();
  give_up_start(gang, {.code = base::ErrorCode::kUnavailable, .what = "its room was given back"});
  save(gang);
  switch (gang->stage) {
    case Stage::kToKeep:   // its record is yet to be there
    case Stage::kSending:  // its answer says what is to be cancelled
      return;
    case Stage::kUnsure:
      return poll_soon();
    case Stage::kToSend:
    case Stage::kOver:
      return forget(gang);
    case Stage::kQueued:
    case Stage::kThere:
      if (is_anothers(*gang)) return forget(gang);
      return end_in_slurm(gang);
  }
}

void SlurmEngine::Impl::end_in_slurm(const GangPointer& gang) {
  bool ends_by_itself = gang->stage == Stage::kThere && !gang->record.queued_again;
  for (const auto& [name, task] : gang->tasks) {
    const slurm::Seat& seat = gang->seat_of(*task);
    if (seat.left || seat.node.empty()) continue;
    const bool runs = seat.started && !task->end;
    if (runs || task->line == nullptr) ends_by_itself = false;
    if (task->line == nullptr) continue;
    if (runs) task->line->send(node::StopOrder{StopMode::kNow});
    if (!seat.started) farewell(gang, task);
  }
  something_changed();
  if (!ends_by_itself) return cancel(gang);
  gang->back_since = Steady::now();
  schedule_poll();
}

void SlurmEngine::Impl::cancel(const GangPointer& gang) {
  if (gang->record.slurm_job == 0) return;
  gang->is_cancelled = false;
  to_cancel.insert(gang->record.slurm_job);
  // With the others of this turn.
  soon([this] { send_cancels(); });
}

void SlurmEngine::Impl::send_cancels() {
  if (is_cancelling || to_cancel.empty() || away_since) return schedule_poll();
  is_cancelling = true;
  const std::set<uint64_t> ids = std::exchange(to_cancel, {});
  client->cancel({ids.begin(), ids.end()}, [this, ids](Result<void> cancelled) {
    is_cancelling = false;
    something_changed();
    if (!cancelled) {
      base::log_warning("Slurm does not cancel jobs: " + cancelled.error().what);
      to_cancel.insert(ids.begin(), ids.end());  // with the next poll that is answered
      return schedule_poll();
    }
    for (const auto& [name, gang] : gangs) {
      if (ids.count(gang->record.slurm_job) > 0) gang->is_cancelled = true;
    }
    if (!to_cancel.empty()) soon([this] { send_cancels(); });
    schedule_poll();
  });
}

/// Slurm has nothing of it any more. What was asked for meanwhile is asked now.
void SlurmEngine::Impl::forget(const GangPointer& gang) {
  if (find(gang->gang) != gang) return;
  gang->stage = Stage::kOver;
  gang->retry.reset();
  gang->call_back.reset();
  for (const auto& [name, task] : gang->tasks) {
    task->line.reset();
    task->timer.reset();
  }
  to_cancel.erase(gang->record.slurm_job);
  std::error_code ignored;
  fs::remove(slurm::gang_record_in(attempt_folder(gang->gang)), ignored);
  gangs.erase(gang->gang);
  if (!gang->again) return;
  auto former = gang->record.former;
  if (gang->record.slurm_job != 0) former.push_back(gang->record.slurm_job);
  ask_anew(gang->gang, *std::move(gang->again), std::move(former));
}

}  // namespace muster::engine
