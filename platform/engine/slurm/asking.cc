// Asking Slurm for room. What is asked is written down first, so that it is never asked twice: a
// server that died, or an answer that was lost, leaves a record by whose comment the Slurm job is
// found again.
#include <algorithm>

#include "base/files.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "engine/slurm/room_words.h"
#include "engine/slurm/slurm_engine_impl.h"
#include "engine/slurm/submission.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using slurm::GangRecord;
using slurm::HeldGang;
using slurm::Stage;
using slurm::Submission;

void SlurmEngine::Impl::ask(const Gang& gang, RoomWish wish) {
  begin();
  if (const GangPointer held = find(gang)) return take_up(held, std::move(wish));
  ask_anew(gang, std::move(wish), {});
}

/// `former`: Slurm jobs of the same gang, which may be listed for some time yet.
void SlurmEngine::Impl::ask_anew(const Gang& gang, RoomWish wish, std::vector<uint64_t> former) {
  auto submission = slurm::submission_for(wish, options);
  if (submission && site_fault) submission = *site_fault;
  if (!submission) {
    return soon([this, gang, error = submission.error()] {
      if (room_listener) room_listener(gang, RoomRefused{error});
    });
  }
  if (take_over(gang, wish, *submission)) return;
  GangRecord record{.key = random.bytes<std::tuple_size_v<rsh::Key>>(),
                    .submitted_attempt = gang.attempt,
                    .comment = slurm::comment_for(options.owner, gang),
                    .shape = slurm::shape_of(*submission),
                    .former = std::move(former),
                    .seats = slurm::seats_for(wish)};
  const GangPointer held = hold(gang, std::move(record), Stage::kToKeep);
  held->wish = std::move(wish);
  held->wants_news = true;
  keep_and_send(held);
}

SlurmEngine::Impl::GangPointer SlurmEngine::Impl::hold(const Gang& gang, GangRecord record,
                                                       Stage stage) {
  auto held = std::make_shared<HeldGang>();
  held->gang = gang;
  held->record = std::move(record);
  held->stage = stage;
  for (size_t i = 0; i < held->record.seats.size(); ++i) {
    auto task = std::make_shared<slurm::HeldTask>();
    task->name = held->record.seats[i].task;
    task->seat = i;
    held->tasks[task->name] = std::move(task);
  }
  gangs[gang] = held;
  something_changed();
  return held;
}

/// What is there of it already: of an earlier server, or of an earlier wish that was taken back.
void SlurmEngine::Impl::take_up(const GangPointer& gang, RoomWish wish) {
  if (gang->record.given_back) {
    gang->again = std::move(wish);
    return tell_waits(gang, slurm::earlier_words(gang->record.slurm_job));
  }
  gang->wish = std::move(wish);
  gang->wants_news = true;
  gang->is_told = false;
  gang->waits.reset();
  if (gang->stage == Stage::kQueued) {
    tell_waits(gang, slurm::sent_words(gang->record.slurm_job));
    if (gang->listed) heed(gang, &*gang->listed);
  }
  poll_soon();
  soon([this, gang] { give_if_all_there(gang); });
}

/// Slurm runs the job of an earlier attempt again: with its age and its place in the queue.
bool SlurmEngine::Impl::take_over(const Gang& gang, const RoomWish& wish,
                                  const Submission& submission) {
  GangPointer before;
  for (auto each = gangs.lower_bound({gang.job_id, 0}); each != gangs.end() && each->first < gang;
       ++each) {
    const HeldGang& held = *each->second;
    const bool is_to_be_had =
        held.record.queued_again && !held.record.given_back && held.stage != Stage::kOver;
    if (is_to_be_had) before = each->second;
  }
  if (before == nullptr || before->record.shape != slurm::shape_of(submission)) return false;
  GangRecord record = before->record;
  record.seats = slurm::seats_for(wish);
  record.restarts = before->listed ? before->listed->restarts : record.restarts + 1;
  record.given = record.queued_again = false;
  record.taken.reset();
  const GangPointer held = hold(gang, std::move(record), Stage::kQueued);
  held->wish = wish;
  held->wants_news = true;
  held->listed = before->listed;
  before->record.queued_again = false;
  before->stage = Stage::kOver;
  if (auto made = base::make_private_folder(attempt_folder(gang)); !made) {
    base::log_error(made.error().what);
  }
  save(held);
  if (held->listed) {
    heed(held, &*held->listed);
  } else {
    tell_waits(held, slurm::sent_words(held->record.slurm_job));
  }
  poll_soon();
  return true;
}

void SlurmEngine::Impl::keep_and_send(const GangPointer& gang) {
  const std::filesystem::path folder = attempt_folder(gang->gang);
  if (auto made = base::make_private_folder(folder); !made) {
    return refuse(gang, std::move(made).error());
  }
  gang->stage = Stage::kToKeep;
  keeper.keep(slurm::gang_record_in(folder), gang->record, [this, gang](Result<void> kept) {
    if (!kept) return refuse(gang, std::move(kept).error());
    gang->stage = Stage::kToSend;
    if (gang->record.given_back) return forget(gang);
    send(gang);
  });
}

Submission SlurmEngine::Impl::full_submission(const HeldGang& gang, Submission submission) const {
  const node::NodeBrief brief{.caller = {{gang.gang.job_id, gang.record.submitted_attempt}},
                              .key = gang.record.key,
                              .hosts = site.hosts,
                              .port = site.hub->port(),
                              .sharing = options.sharing,
                              .folder = options.folder.string(),
                              .mark = site.mark,
                              .nonce = site.nonce,
                              .linger = options.linger};
  const bool may_share = options.sharing != node::Sharing::kNo;
  submission.comment = gang.record.comment;
  submission.script =
      slurm::node_script(brief, submission.components, slurm::guests_of(*gang.wish),
                         programs_on_nodes(), may_share ? attempt_folder(gang.gang).string() : "");
  submission.environment = slurm::script_environment(base::current_environment());
  return submission;
}

void SlurmEngine::Impl::send(const GangPointer& gang) {
  if (gang->stage != Stage::kToSend || !gang->wish || gang->record.given_back) return;
  if (away_since) return tell_waits(gang, away_waits(*gang));
  auto submission = slurm::submission_for(*gang->wish, options);
  if (!submission) return refuse(gang, std::move(submission).error());
  gang->retry.reset();
  gang->stage = Stage::kSending;
  client->submit(full_submission(*gang, *std::move(submission)),
                 [this, gang](Result<uint64_t> answer) { sent(gang, std::move(answer)); });
}

void SlurmEngine::Impl::sent(const GangPointer& gang, Result<uint64_t> answer) {
  gang->known_at = polls;
  something_changed();
  if (answer) {
    if (gang->stage == Stage::kSending) gang->stage = Stage::kQueued;
    // A muster-node may have been quicker than this answer.
    if (gang->record.slurm_job == 0) gang->record.slurm_job = *answer;
    save(gang);
    if (gang->record.given_back) return end_in_slurm(gang);
    if (gang->stage != Stage::kQueued) return;
    tell_waits(gang, slurm::sent_words(*answer));
    return give_if_all_there(gang);
  }
  if (gang->stage != Stage::kSending) return;
  if (answer.error().code == ErrorCode::kTimeout) {
    gang->stage = Stage::kUnsure;
    tell_waits(gang, slurm::unsure_words());
    return poll_soon();
  }
  gang->stage = Stage::kToSend;
  if (gang->record.given_back) return forget(gang);
  switch (answer.error().code) {
    case ErrorCode::kUnavailable:
      controller_away(answer.error());
      return tell_waits(gang, away_waits(*gang));
    case ErrorCode::kExhausted:
      tell_waits(gang, slurm::not_sent_words(answer.error().what));
      return send_again(gang, options.slow_poll);
    default:
      return refuse(gang, std::move(answer).error());
  }
}

void SlurmEngine::Impl::send_again(const GangPointer& gang, std::chrono::milliseconds pause) {
  gang->retry = loop.after(pause, [this, weak = std::weak_ptr(gang)] {
    if (const GangPointer still = weak.lock()) send(still);
  });
}

void SlurmEngine::Impl::send_all_unsent() {
  const auto all = gangs;
  for (const auto& [name, gang] : all) {
    if (gang->stage == Stage::kToSend && !gang->retry) send(gang);
  }
}

void SlurmEngine::Impl::refuse(const GangPointer& gang, Error error) {
  if (!gang->record.given_back) tell(gang, RoomRefused{std::move(error)});
  forget(gang);
}

}  // namespace muster::engine
