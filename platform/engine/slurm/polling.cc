// The queue, as Slurm lists it: one call for all gangs, at short intervals while something changes
// and at long ones at rest, and none while there is nothing to learn. It says why a gang waits, and
// what happened behind the server's back; starts and ends are told by muster-nodes before that.
#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "engine/slurm/room_words.h"
#include "engine/slurm/slurm_engine_impl.h"
#include "engine/slurm/submission.h"

namespace muster::engine {

using base::Error;
using slurm::HeldGang;
using slurm::ListedJob;
using slurm::Stage;
using slurm::Steady;

namespace {

/// After a change more of them are likely.
constexpr std::chrono::seconds kUnrest{30};
/// Polls that follow each other while Slurm is about to say what it has done; and, so that many
/// gangs together do not ask without end, after how long one more may be had.
constexpr int kHurries = 8;
constexpr std::chrono::milliseconds kHurry{400};
constexpr std::chrono::seconds kNextHurry{10};
/// Slurm was told to end it, and is still at it.
constexpr std::chrono::seconds kCancelAgain{60};
/// Polls in a row that must miss a job: a controller that has just come back may not have read all.
constexpr int kMissing = 2;

}  // namespace

void SlurmEngine::Impl::something_changed() {
  last_change = Steady::now();
  schedule_poll();
}

/// When a line broke or a signal came, Slurm knows why, or will in a moment.
void SlurmEngine::Impl::poll_soon() {
  something_changed();
  hurry = kHurries;
  if (is_polling) {
    polls_again = true;
    return;
  }
  schedule_poll();
}

/// A poll that comes earlier than at the quick pace takes one; each comes back after a while.
int SlurmEngine::Impl::hurries_left() {
  const auto now = Steady::now();
  hurries_from = std::max(hurries_from, now - kHurries * kNextHurry);
  return static_cast<int>((now - hurries_from) / kNextHurry);
}

/// The next one, where there is something to learn: as early as anybody needs it.
void SlurmEngine::Impl::schedule_poll() {
  if (is_polling || !has_begun) return;
  if (gangs.empty() && to_cancel.empty() && has_swept) return poll_timer.reset();
  const bool restless = Steady::now() - last_change < kUnrest;
  std::chrono::milliseconds pause = restless ? options.quick_poll : options.slow_poll;
  const bool hurries = hurry > 0 && hurries_left() > 0 && !away_since && pause > kHurry;
  if (hurries) pause = kHurry;
  if (polls == 0) pause = std::chrono::milliseconds(0);
  const auto due = Steady::now() + pause;
  if (poll_timer && poll_due <= due) return;
  is_hurrying = hurries;
  poll_due = due;
  poll_timer = loop.after(pause, [this] { poll(); });
}

void SlurmEngine::Impl::poll() {
  if (is_polling) return;
  poll_timer.reset();
  is_polling = true;
  polls_again = false;
  if (hurry > 0) --hurry;
  if (is_hurrying) hurries_from += kNextHurry;
  client->jobs([this, number = ++polls](Result<std::vector<ListedJob>> jobs) {
    is_polling = false;
    if (jobs) {
      controller_back();
      heed(number, *jobs);
    } else {
      controller_away(jobs.error());
    }
    schedule_poll();
  });
}

void SlurmEngine::Impl::heed(uint64_t number, const std::vector<ListedJob>& jobs) {
  std::unordered_map<uint64_t, const ListedJob*> by_id;
  for (const ListedJob& job : jobs) by_id[job.id] = &job;
  std::vector<GangPointer> missing;
  const auto all = gangs;
  for (const auto& [name, gang] : all) {
    // What was sent after this was asked cannot be in it.
    if (gang->known_at >= number) continue;
    if (gang->stage == Stage::kUnsure) find_unsure(gang, jobs);
    if (gang->record.slurm_job == 0 || gang->stage == Stage::kOver) continue;
    const auto found = by_id.find(gang->record.slurm_job);
    if (found != by_id.end()) {
      gang->missing = 0;
      heed(gang, found->second);
      if (found->second->state == slurm::JobState::kRunning) clear_suspicions(gang, number);
    } else if (++gang->missing >= kMissing || gang->record.given_back) {
      missing.push_back(gang);
    } else {
      polls_again = true;
    }
  }
  if (!missing.empty()) look_into_past(std::move(missing));
  sweep(jobs);
  has_swept = true;
  send_all_unsent();
  send_cancels();
  if (std::exchange(polls_again, false)) hurry = std::max(hurry, 1);
}

/// By the comment that was written down before it was sent.
void SlurmEngine::Impl::find_unsure(const GangPointer& gang, const std::vector<ListedJob>& jobs) {
  const ListedJob* found = nullptr;
  const auto& former = gang->record.former;
  for (const ListedJob& job : jobs) {
    if (job.comment != gang->record.comment) continue;
    if (std::find(former.begin(), former.end(), job.id) != former.end()) continue;
    if (found == nullptr || (is_over(found->state) && !is_over(job.state))) found = &job;
  }
  if (found != nullptr) {
    gang->record.slurm_job = found->id;
    gang->stage = Stage::kQueued;
    save(gang);
    return;
  }
  gang->stage = Stage::kToSend;
  if (gang->record.given_back) return forget(gang);
  send(gang);
}

void SlurmEngine::Impl::heed(const GangPointer& gang, const ListedJob* listed) {
  if (!gang->listed || gang->listed->state != listed->state) something_changed();
  gang->listed = *listed;
  if (is_over(listed->state)) return over_in_slurm(gang, *listed);
  if (gang->record.given_back || (gang->record.taken && !gang->record.queued_again)) {
    const bool is_late = gang->back_since && Steady::now() - *gang->back_since > kCancelAgain;
    const bool is_asked = to_cancel.count(listed->id) > 0;
    if (is_asked || (!is_late && (gang->back_since || gang->is_cancelled))) return;
    gang->back_since = Steady::now();
    return cancel(gang);
  }
  if (gang->record.queued_again) return;
  if (listed->restarts > gang->record.restarts ||
      (listed->state == slurm::JobState::kPending && gang->stage == Stage::kThere)) {
    queued_again(gang, *listed);
    if (gang->stage == Stage::kThere) return;
  }
  if (gang->stage == Stage::kQueued && listed->state == slurm::JobState::kPending) {
    return waits_in_slurm(gang, *listed);
  }
  runs_in_slurm(gang, *listed);
}

/// What the controller has forgotten the accounting database may know.
void SlurmEngine::Impl::look_into_past(std::vector<GangPointer> missing) {
  std::vector<uint64_t> ids;
  for (const GangPointer& gang : missing) ids.push_back(gang->record.slurm_job);
  client->past_jobs(std::move(ids), [this, missing](const Result<std::vector<ListedJob>>& past) {
    const std::vector<ListedJob> none;
    const std::vector<ListedJob>& all = past ? *past : none;
    for (const GangPointer& gang : missing) {
      if (find(gang->gang) != gang || gang->stage == Stage::kOver) continue;
      const ListedJob* known = nullptr;
      for (const ListedJob& job : all) {
        if (job.id == gang->record.slurm_job && is_over(job.state)) known = &job;
      }
      known != nullptr ? over_in_slurm(gang, *known) : vanished(gang);
    }
    schedule_poll();
  });
}

/// Jobs of this server that no record knows: of one that was lost with its disk, or a second one
/// where an answer came late.
void SlurmEngine::Impl::sweep(const std::vector<ListedJob>& jobs) {
  std::set<uint64_t> known;
  std::set<std::string> under_way;
  for (const auto& [name, gang] : gangs) {
    known.insert(gang->record.slurm_job);
    if (gang->record.slurm_job == 0) under_way.insert(gang->record.comment);
  }
  for (const ListedJob& job : jobs) {
    if (is_over(job.state) || !slurm::is_comment_of(options.owner, job.comment)) continue;
    if (known.count(job.id) > 0 || under_way.count(job.comment) > 0) continue;
    base::log_warning("job " + std::to_string(job.id) +
                      " in Slurm is nobody's any more, and is cancelled: " + job.comment);
    to_cancel.insert(job.id);
  }
}

// --- a controller that does not answer

void SlurmEngine::Impl::controller_away(const Error& error) {
  if (!away_since) {
    away_since = base::SystemClock().now();
    base::log_warning("Slurm's controller does not answer: " + error.what);
  }
  away_why = error.what;
  for (const auto& [name, gang] : gangs) {
    if (gang->stage == Stage::kThere) {
      tell_says(gang, slurm::away_words(*away_since));
    } else if (gang->stage == Stage::kQueued || gang->stage == Stage::kToSend) {
      tell_waits(gang, away_waits(*gang));
    }
  }
}

void SlurmEngine::Impl::controller_back() {
  if (!away_since) return;
  base::log_info("Slurm's controller answers again");
  away_since.reset();
  something_changed();
  for (const auto& [name, gang] : gangs) tell_says(gang, std::nullopt);
}

RoomWaits SlurmEngine::Impl::away_waits(const HeldGang& gang) const {
  return slurm::away_waits(gang.waits.value_or(RoomWaits{}), gang.record.slurm_job, *away_since,
                           away_why);
}

}  // namespace muster::engine
