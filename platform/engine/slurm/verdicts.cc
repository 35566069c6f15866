// What Slurm has done to a gang's job, as its listing says: it waits, it is being started, it is
// queued again, it is over. A task whose end is known, or can still be read in its folder, is not
// lost with it.
#include <signal.h>

#include <algorithm>

#include "base/files.h"
#include "base/log.h"
#include "base/text.h"
#include "engine/shim/plan.h"
#include "engine/slurm/node_script.h"
#include "engine/slurm/room_words.h"
#include "engine/slurm/slurm_engine_impl.h"
#include "engine/slurm/slurm_words.h"
#include "engine/task_folder_reading.h"
#include "words/sentence.h"

namespace muster::engine {

using slurm::HeldGang;
using slurm::JobState;
using slurm::ListedJob;
using slurm::ListedNode;
using slurm::Stage;
using slurm::Steady;

namespace {

/// Between the end of a Slurm job and the last words of its muster-nodes.
constexpr std::chrono::seconds kLastReportGrace{3};
constexpr size_t kMostScriptOutput = 64 << 10;
constexpr size_t kLastScriptLines = 5;

std::string with_printed(std::string text, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) text += "\n  " + line;
  return text;
}

}  // namespace

void SlurmEngine::Impl::waits_in_slurm(const GangPointer& gang, const ListedJob& listed) {
  gang->call_back.reset();
  tell_waits(gang, slurm::waiting_words(listed));
}

void SlurmEngine::Impl::runs_in_slurm(const GangPointer& gang, const ListedJob& listed) {
  if (gang->stage == Stage::kQueued && listed.state == JobState::kCompleting) {
    // What ran of it before is still being ended.
    gang->call_back.reset();
    return tell_waits(gang, slurm::completing_words(listed));
  }
  const bool is_suspended = listed.state == JobState::kSuspended;
  if (gang->stage == Stage::kThere) {
    if (away_since) return;
    const bool is_ending = listed.state == JobState::kCompleting;
    if (is_suspended) return tell_says(gang, slurm::suspended_words(listed));
    if (is_ending) return tell_says(gang, slurm::ending_words(listed));
    return tell_says(gang, std::nullopt);
  }
  std::vector<std::string> silent;
  for (const std::string& node : listed.nodes) {
    const bool has_called =
        std::any_of(gang->tasks.begin(), gang->tasks.end(), [&](const auto& each) {
          return each.second->line != nullptr && gang->seat_of(*each.second).node == node;
        });
    if (!has_called) silent.push_back(node);
  }
  tell_waits(gang, slurm::starting_words(listed, silent, awaited_at()));
  if (is_suspended) {
    gang->call_back.reset();
  } else if (!gang->call_back) {
    gang->call_back = loop.after(options.call_back_within, [this, weak = std::weak_ptr(gang)] {
      if (const GangPointer still = weak.lock()) nodes_are_late(still);
    });
  }
  give_if_all_there(gang);
}

/// "login1 or 10.0.0.4 at port 40123".
std::string SlurmEngine::Impl::awaited_at() const {
  return base::joined(site.hosts, " or ") + " at port " + std::to_string(site.hub->port());
}

void SlurmEngine::Impl::nodes_are_late(const GangPointer& gang) {
  if (gang->stage != Stage::kQueued || gang->record.given_back) return;
  std::string late;
  std::vector<std::string> nodes;
  if (gang->listed) nodes = gang->listed->nodes;
  for (const auto& [name, task] : gang->tasks) {
    if (task->line == nullptr) continue;
    std::erase(nodes, gang->seat_of(*task).node);
  }
  if (!nodes.empty()) late = nodes.front();
  RoomTaken taken = slurm::late_words(gang->record.slurm_job, nodes, options.call_back_within);
  taken.node = late;
  taken.advice = "see that " + programs_on_nodes() +
                 "/muster-node is there, and that the node reaches " + awaited_at() +
                 " (a firewall; --slurm-callback)";
  taken.printed = output_of(*gang);
  take_away(gang, std::move(taken));
  cancel(gang);
}

// --- queued again

/// The same job of Slurm's, with the same key, for another attempt of ours.
void SlurmEngine::Impl::queued_again(const GangPointer& gang, const ListedJob& listed) {
  if (gang->stage == Stage::kThere) {
    gang->record.queued_again = true;
    client->nodes([this, gang](const Result<std::vector<ListedNode>>& nodes) {
      tell_queued_again(gang, nodes ? *nodes : std::vector<ListedNode>{});
    });
    return;
  }
  // None of it had begun: the same attempt waits on.
  gang->record.restarts = listed.restarts;
  for (const auto& [name, task] : gang->tasks) {
    task->line.reset();
    gang->seat_of(*task).node.clear();
  }
  gang->call_back.reset();
  save(gang);
}

void SlurmEngine::Impl::tell_queued_again(const GangPointer& gang,
                                          const std::vector<ListedNode>& nodes) {
  if (!gang->record.queued_again || gang->stage != Stage::kThere) return;
  ended_by_slurm(gang);
  find_ends_in_folders(gang);
  take_away(gang, slurm::queued_again_words(gang->record.slurm_job, broken_node(*gang, nodes)));
}

/// One of a gang's nodes that is down; empty: none is.
std::string SlurmEngine::Impl::broken_node(const HeldGang& gang,
                                           const std::vector<ListedNode>& nodes) {
  for (const ListedNode& node : nodes) {
    const bool is_ours =
        std::any_of(gang.record.seats.begin(), gang.record.seats.end(),
                    [&](const slurm::Seat& seat) { return seat.node == node.name; });
    if (is_ours && !slurm::answers(node.state_text)) return node.name;
  }
  return "";
}

// --- over

void SlurmEngine::Impl::over_in_slurm(const GangPointer& gang, const ListedJob& listed) {
  if (gang->stage == Stage::kOver || is_anothers(*gang)) return;
  const bool was_there = gang->stage == Stage::kThere && !gang->record.taken;
  if (was_there) {
    const bool was_ended =
        listed.state != JobState::kCompleted && listed.state != JobState::kFailed;
    if (was_ended) ended_by_slurm(gang);
    const bool all_known = find_ends_in_folders(gang);
    // A signal that was sent by hand (scancel --signal) is no verdict of Slurm's.
    if (all_known && !was_ended) forget_signals(gang);
    // What their muster-nodes still have to say is on its way here, or never will be.
    if (!gang->over_since) gang->over_since = Steady::now();
    if (!all_known && Steady::now() - *gang->over_since < kLastReportGrace &&
        std::any_of(
            gang->tasks.begin(), gang->tasks.end(),
            [](const auto& each) { return each.second->line != nullptr; })) {
      return poll_soon();
    }
  }
  gang->stage = Stage::kOver;
  const bool began = std::any_of(gang->record.seats.begin(), gang->record.seats.end(),
                                 [](const slurm::Seat& seat) { return seat.started; });
  const bool ended_by_itself =
      was_there && began &&
      std::all_of(gang->tasks.begin(), gang->tasks.end(), [&](const auto& each) {
        const slurm::HeldTask& task = *each.second;
        return !gang->seat_of(task).started || (task.end && !slurm::was_ended_by_slurm(task));
      });
  if (gang->record.taken || ended_by_itself) return settle_over(gang);
  if (!was_there) {
    RoomTaken taken = slurm::over_words(listed, false);
    taken.printed = output_of(*gang);
    take_away(gang, std::move(taken));
    return settle_over(gang);
  }
  const bool may_be_a_node =
      listed.state == JobState::kFailed || listed.state == JobState::kUnknown;
  if (!may_be_a_node) {
    take_away(gang, slurm::over_words(listed, true));
    return settle_over(gang);
  }
  // srun fails with a node, and the script with it, before Slurm says so of the job.
  client->nodes([this, gang, listed](const Result<std::vector<ListedNode>>& nodes) {
    const std::string broken = nodes ? broken_node(*gang, *nodes) : "";
    take_away(gang, broken.empty() ? slurm::over_words(listed, true)
                                   : slurm::node_down_words(listed.id, broken));
    settle_over(gang);
  });
}

/// What was stopped and not by this server, Slurm has stopped, though nobody said so.
void SlurmEngine::Impl::ended_by_slurm(const GangPointer& gang) {
  for (const auto& [name, task] : gang->tasks) {
    if (!task->end && task->signal == 0) task->signal = SIGTERM;
  }
}

/// Its tasks have ended as they have, and wait for no reason.
void SlurmEngine::Impl::forget_signals(const GangPointer& gang) {
  for (const auto& [name, task] : gang->tasks) {
    if (slurm::was_ended_by_slurm(*task)) tell_as_it_ended(gang, task);
  }
}

void SlurmEngine::Impl::settle_over(const GangPointer& gang) {
  if (gang->record.given_back) return forget(gang);
  save(gang);
}

/// Its controller has lost it, or it is over for so long that it is forgotten.
void SlurmEngine::Impl::vanished(const GangPointer& gang) {
  const bool is_alive = std::any_of(gang->tasks.begin(), gang->tasks.end(), [](const auto& each) {
    return each.second->line != nullptr && !each.second->is_reported;
  });
  if (gang->record.given_back || gang->record.taken) {
    for (const auto& [name, task] : gang->tasks) lose(gang, task, "Slurm has forgotten its job");
    gang->stage = Stage::kOver;
    if (gang->record.given_back) forget(gang);
    return;
  }
  if (is_alive) return;  // it goes on as long as it lasts
  if (gang->stage == Stage::kThere) {
    return over_in_slurm(gang, {.id = gang->record.slurm_job,
                                .comment = {},
                                .state = JobState::kUnknown,
                                .state_text = {},
                                .reason = {},
                                .nodes = {},
                                .partition = {},
                                .account = {},
                                .qos = {}});
  }
  base::log_warning("Slurm has no record of job " + std::to_string(gang->record.slurm_job) +
                    " any more, which had not begun: it is sent again");
  gang->record.former.push_back(std::exchange(gang->record.slurm_job, 0));
  gang->record.restarts = 0;
  gang->missing = 0;
  gang->listed.reset();
  save(gang);
  gang->stage = Stage::kToSend;
  send(gang);
}

/// Tells so, and of each task that had not ended that it is lost.
void SlurmEngine::Impl::take_away(const GangPointer& gang, RoomTaken taken) {
  if (gang->record.taken) return;
  gang->record.taken = taken;
  gang->call_back.reset();
  save(gang);
  something_changed();
  const std::string why = with_printed(words::sentence(taken.end), taken.printed);
  if (!gang->record.given_back) tell(gang, std::move(taken));
  give_up_start(gang, {.code = base::ErrorCode::kUnavailable, .what = why});
  for (const auto& [name, task] : gang->tasks) {
    lose(gang, task, why);
    task->timer.reset();
  }
}

bool SlurmEngine::Impl::find_ends_in_folders(const GangPointer& gang) {
  bool all_known = true;
  for (const auto& [name, task] : gang->tasks) {
    if (!gang->seat_of(*task).started || task->end) continue;
    TaskEnded end = end_left_in(folder_of(gang->gang, name));
    if (end.status.lost) {
      all_known = false;
      continue;
    }
    ended(gang, task, std::move(end));
  }
  return all_known;
}

void SlurmEngine::Impl::task_is_silent(const GangPointer& gang, const TaskPointer& task) {
  if (task->line != nullptr || task->end || gang->record.given_back || gang->record.taken) return;
  if (away_since) return watch_silence(gang, task);
  const std::string& node = gang->seat_of(*task).node;
  find_ends_in_folders(gang);
  if (task->end) return;
  RoomTaken taken = slurm::silent_words(gang->record.slurm_job, node, task->name);
  taken.node = node;
  take_away(gang, std::move(taken));
  cancel(gang);
}

/// The last lines of what the script, srun and muster-nodes have said, where they could be read.
std::vector<std::string> SlurmEngine::Impl::output_of(const HeldGang& gang) const {
  // An earlier attempt's script writes where that attempt was.
  const auto file =
      attempt_folder({gang.gang.job_id, gang.record.submitted_attempt}) / slurm::kScriptOutput;
  const auto text = base::read_file(file, kMostScriptOutput);
  if (!text) return {};
  std::vector<std::string> lines = base::split(*text, '\n');
  std::erase(lines, "");
  if (lines.size() > kLastScriptLines) lines.erase(lines.begin(), lines.end() - kLastScriptLines);
  return lines;
}

}  // namespace muster::engine
