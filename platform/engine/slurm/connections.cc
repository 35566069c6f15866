// Muster-nodes that call: which gang and task each is of, and, when all of a gang have called, that
// its room is there. Whoever is of an earlier run of the same Slurm job is hung up on.
#include <algorithm>

#include "base/log.h"
#include "engine/slurm/room_words.h"
#include "engine/slurm/slurm_engine_impl.h"

namespace muster::engine {

using slurm::HeldGang;
using slurm::Seat;
using slurm::Stage;

namespace {

/// A muster-node calls again every few seconds; and who cannot reach the server for so long cannot
/// be told to stop, either.
constexpr std::chrono::minutes kSilence{5};

}  // namespace

/// Of the attempt that the caller's script was sent for, or of the latest that goes on with its
/// Slurm job.
SlurmEngine::Impl::GangPointer SlurmEngine::Impl::present_of(const Gang& caller) const {
  GangPointer present;
  for (auto each = gangs.lower_bound(caller);
       each != gangs.end() && each->first.job_id == caller.job_id; ++each) {
    if (each->second->record.submitted_attempt == caller.attempt) present = each->second;
  }
  return present;
}

std::optional<rsh::Key> SlurmEngine::Impl::key_of(const Gang& caller) const {
  const GangPointer gang = present_of(caller);
  if (gang == nullptr) return std::nullopt;
  return gang->record.key;
}

void SlurmEngine::Impl::connected(std::shared_ptr<node::NodeConnection> line) {
  const node::Hello& hello = line->hello();
  if (hello.stream != 0) {
    const auto waiting = streams.extract(hello.stream);
    if (!waiting.empty()) waiting.mapped()(std::move(line));
    return;
  }
  const GangPointer gang = present_of(line->gang());
  if (gang == nullptr || hello.facts.restarts < gang->record.restarts) return;
  if (gang->record.slurm_job == 0) {
    // It is quicker than the answer of who submitted it, or that answer was lost.
    gang->record.slurm_job = hello.facts.allocation;
    if (gang->stage == Stage::kSending || gang->stage == Stage::kUnsure ||
        gang->stage == Stage::kToSend) {
      gang->stage = Stage::kQueued;
    }
    gang->known_at = polls;
    save(gang);
  }
  if (hello.facts.allocation != gang->record.slurm_job) {
    base::log_warning("a program of Slurm job " + std::to_string(hello.facts.allocation) +
                      " calls for a gang that runs as job " +
                      std::to_string(gang->record.slurm_job));
    return;
  }
  if (hello.facts.restarts > gang->record.restarts) {
    // Slurm has begun it again; the listing says so, too, and what follows from it.
    if (gang->stage != Stage::kQueued) return poll_soon();
    gang->record.restarts = hello.facts.restarts;
    for (const auto& [name, task] : gang->tasks) task->line.reset();
    save(gang);
  }
  for (const auto& [name, task] : gang->tasks) {
    const Seat& seat = gang->seat_of(*task);
    if (seat.component != hello.facts.component || seat.index != hello.facts.index) continue;
    // Of a run that Slurm has forgotten, and ends in a moment.
    if (hello.holds_task && !seat.started && !task->start) return;
    return greeted(gang, task, std::move(line));
  }
  base::log_warning("a program of Slurm job " + std::to_string(hello.facts.allocation) +
                    " calls for a task that the job does not have");
}

void SlurmEngine::Impl::greeted(const GangPointer& gang, const TaskPointer& task,
                                std::shared_ptr<node::NodeConnection> line) {
  const node::Hello& hello = line->hello();
  Seat& seat = gang->seat_of(*task);
  const bool is_new = seat.node != hello.facts.node || seat.address != hello.address;
  seat.node = hello.facts.node;
  seat.address = hello.address;
  // What was begun goes on as it was begun.
  if (!seat.started) {
    seat.shares_folder = options.sharing != node::Sharing::kNo && hello.shares_folder;
  }
  task->gpu_indices = hello.facts.gpu_indices;
  if (task->gpu_indices.empty()) {
    for (size_t i = 0; i < hello.facts.gpus.size(); ++i)
      task->gpu_indices.push_back(static_cast<int>(i));
  }
  task->holds_task = hello.holds_task;
  task->line = line;
  task->timer.reset();
  const std::weak_ptr<HeldGang> weak_gang = gang;
  const std::weak_ptr<slurm::HeldTask> weak_task = task;
  const std::weak_ptr<node::NodeConnection> weak_line = line;
  line->listen({.on_message =
                    [this, weak_gang, weak_task, weak_line](node::NodeMessage message) {
                      const auto its_gang = weak_gang.lock();
                      const auto its_task = weak_task.lock();
                      if (!its_gang || !its_task || its_task->line != weak_line.lock()) return;
                      heard(its_gang, its_task, std::move(message));
                    },
                .on_end =
                    [this, weak_gang, weak_task, weak_line](const std::string&) {
                      const auto its_gang = weak_gang.lock();
                      const auto its_task = weak_task.lock();
                      if (!its_gang || !its_task || its_task->line != weak_line.lock()) return;
                      line_is_gone(its_gang, its_task);
                    }});
  line->send(task->mirror ? node::Welcome{.log_offset = task->mirror->log_offset(),
                                          .metrics_offset = task->mirror->metrics_offset()}
                          : node::Welcome{});
  if (seat.left || (gang->record.given_back && !seat.started) ||
      (gang->record.taken && !gang->record.queued_again)) {
    return farewell(gang, task);
  }
  if (seat.started) {
    if (!hello.holds_task && task->start && !task->up) return order_again(gang, task);
    if (!hello.holds_task && !task->end && !task->start) {
      return lose(gang, task, "its muster-node on " + seat.node + " has lost it");
    }
    if (gang->record.given_back) line->send(node::StopOrder{StopMode::kNow});
    if (task->stop_wish) line->send(node::StopOrder{*task->stop_wish});
    for (node::NodeOrder& waiting : std::exchange(task->orders, {})) line->send(waiting);
    return;
  }
  if (is_new && gang->stage == Stage::kThere) save_soon(gang);
  give_if_all_there(gang);
}

void SlurmEngine::Impl::line_is_gone(const GangPointer& gang, const TaskPointer& task) {
  const auto line = std::move(task->line);
  task->line = nullptr;
  loop.post([line] {});  // it may be in the midst of calling
  fail_changes(task);
  fail_streams(task);
  if (task->is_leaving) tell_end(gang, task);
  if (gang->seat_of(*task).left || gang->stage == Stage::kOver) return schedule_poll();
  if (gang->seat_of(*task).started) watch_silence(gang, task);
  poll_soon();
}

/// Now, or when its muster-node has called again: after a restart of the server it takes a moment.
void SlurmEngine::Impl::order(const TaskPointer& task, node::NodeOrder order) {
  if (task->line != nullptr) return task->line->send(order);
  task->orders.push_back(std::move(order));
}

void SlurmEngine::Impl::watch_silence(const GangPointer& gang, const TaskPointer& task) {
  if (task->end) return;
  task->timer = loop.after(
      kSilence, [this, weak_gang = std::weak_ptr(gang), weak_task = std::weak_ptr(task)] {
        const auto its_gang = weak_gang.lock();
        const auto its_task = weak_task.lock();
        if (its_gang && its_task) task_is_silent(its_gang, its_task);
      });
}

/// Where fewer tasks than wished for will do, as many are there as Slurm's nodes have.
size_t SlurmEngine::Impl::awaited_tasks(const HeldGang& gang) const {
  const auto& seats = gang.record.seats;
  const auto may_be_missing = [](const Seat& seat) { return seat.may_be_missing; };
  if (std::none_of(seats.begin(), seats.end(), may_be_missing)) return seats.size();
  if (!gang.listed || gang.listed->nodes.empty()) return seats.size();
  const size_t each = static_cast<size_t>(std::max(options.tasks_per_node, 1));
  return std::min(seats.size(), gang.listed->nodes.size() * each);
}

void SlurmEngine::Impl::give_if_all_there(const GangPointer& gang) {
  if (gang->is_told || !gang->wants_news || gang->record.given_back || gang->record.taken) return;
  if (gang->stage != Stage::kQueued && gang->stage != Stage::kThere) return;
  size_t there = 0;
  for (const auto& [name, task] : gang->tasks) {
    if (task->line != nullptr) {
      ++there;
    } else if (!gang->seat_of(*task).may_be_missing) {
      return;
    }
  }
  if (there < awaited_tasks(*gang)) return poll_soon();
  gang->stage = Stage::kThere;
  gang->is_told = true;
  gang->record.given = true;
  gang->call_back.reset();
  something_changed();
  save(gang);
  tell(gang, RoomGiven{.places = places_of(*gang), .slurm_job = gang->record.slurm_job});
}

/// Tasks of one node share its GPUs, in the order of the job.
std::vector<RoomPlace> SlurmEngine::Impl::places_of(const HeldGang& gang) const {
  std::vector<RoomPlace> places;
  std::map<std::string, size_t> taken;
  for (const Seat& seat : gang.record.seats) {
    const auto& task = *gang.tasks.at(seat.task);
    if (task.line == nullptr) continue;
    RoomPlace place{.task = seat.task, .node = seat.node, .devices = {}};
    size_t& next = taken[seat.node];
    for (int i = 0; i < seat.gpus; ++i, ++next) {
      place.devices.push_back(next < task.gpu_indices.size() ? task.gpu_indices[next]
                                                             : static_cast<int>(next));
    }
    places.push_back(std::move(place));
  }
  return places;
}

}  // namespace muster::engine
