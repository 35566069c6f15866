#include "engine/slurm/node_lines.h"

#include <chrono>
#include <string>
#include <utility>

#include "base/log.h"

namespace muster::engine::slurm {

using node::Hello;
using node::NodeConnection;
using node::NodeMessage;

namespace {

/// Muster-nodes reconnect every few seconds. A node that cannot reach the server for this long
/// cannot be ordered to stop, either.
constexpr std::chrono::minutes kSilence{5};

}  // namespace

node::HubOptions NodeLines::hub_options() {
  return {.key_of = [this](const GangId& caller) -> std::optional<rsh::Key> {
            const GangPointer gang = gangs_.current_of(caller);
            if (gang == nullptr) return std::nullopt;
            return gang->record.key;
          },
          .on_connection = [this](Line line) { connected(std::move(line)); }};
}

void NodeLines::connected(Line line) {
  const Hello& hello = line->hello();
  if (hello.stream != 0) return orders_.arrived(hello.stream, std::move(line));
  const GangPointer gang = gangs_.current_of(line->gang());
  if (gang == nullptr || !belongs_to(gang, hello)) return;
  for (const auto& [name, task] : gang->tasks) {
    const Seat& seat = gang->seat_of(*task);
    if (seat.component != hello.facts.component || seat.index != hello.facts.index) continue;
    // The muster-node belongs to a run that Slurm has forgotten and will end soon.
    if (hello.holds_task && !seat.started && !task->start) return;
    return greeted(gang, task, std::move(line));
  }
  base::log_warning("muster-node of Slurm job " + std::to_string(hello.facts.allocation) +
                    " calls for a task that the job does not have");
}

/// Whether the muster-node is of the gang's Slurm job, in its current run.
bool NodeLines::belongs_to(const GangPointer& gang, const Hello& hello) {
  if (hello.facts.restarts < gang->record.restarts) return false;
  if (gang->record.slurm_job == 0) {
    // The muster-node has called before the answer to the submission, or the answer was lost.
    gang->record.slurm_job = hello.facts.allocation;
    if (gang->stage == Stage::kSending || gang->stage == Stage::kUnsure ||
        gang->stage == Stage::kUnsent) {
      gang->stage = Stage::kQueued;
    }
    gang->submitted_at_poll = queue_.polls();
    gangs_.save(gang);
  }
  if (hello.facts.allocation != gang->record.slurm_job) {
    base::log_warning("muster-node of Slurm job " + std::to_string(hello.facts.allocation) +
                      " calls for a gang that runs as job " +
                      std::to_string(gang->record.slurm_job));
    return false;
  }
  if (hello.facts.restarts > gang->record.restarts) {
    // Slurm has started the job again. The next listing will show this, and is handled then.
    if (gang->stage != Stage::kQueued) {
      queue_.poll_soon();
      return false;
    }
    gang->record.restarts = hello.facts.restarts;
    for (const auto& [name, task] : gang->tasks) task->line.reset();
    gangs_.save(gang);
  }
  return true;
}

void NodeLines::greeted(const GangPointer& gang, const TaskPointer& task, Line line) {
  const Hello& hello = line->hello();
  Seat& seat = gang->seat_of(*task);
  const bool is_new = seat.node != hello.facts.node || seat.address != hello.address;
  seat.node = hello.facts.node;
  seat.address = hello.address;
  // A started task keeps the folder that it was started with.
  if (!seat.started) {
    seat.shares_folder = options_.sharing != node::Sharing::kNo && hello.shares_folder;
  }
  task->gpu_indices = hello.facts.gpu_indices;
  if (task->gpu_indices.empty()) {
    for (size_t i = 0; i < hello.facts.gpus.size(); ++i) {
      task->gpu_indices.push_back(static_cast<int>(i));
    }
  }
  task->holds_task = hello.holds_task;
  task->line = std::move(line);
  task->timer.reset();
  listen(gang, task);
  task->line->send(task->mirror ? node::Welcome{.log_offset = task->mirror->log_offset(),
                                                .metrics_offset = task->mirror->metrics_offset()}
                                : node::Welcome{});
  if (seat.left || (gang->record.given_back && !seat.started) ||
      (gang->record.taken && !gang->record.queued_again)) {
    return tasks_.dismiss(gang, task);
  }
  if (seat.started) return continue_started(gang, task);
  if (is_new && gang->stage == Stage::kAllocated) gangs_.save_soon(gang);
  allocations_.report_if_complete(gang);
}

void NodeLines::listen(const GangPointer& gang, const TaskPointer& task) {
  const std::weak_ptr<HeldGang> weak_gang = gang;
  const std::weak_ptr<HeldTask> weak_task = task;
  const std::weak_ptr<NodeConnection> weak_line = task->line;
  task->line->listen({.on_message =
                          [this, weak_gang, weak_task, weak_line](NodeMessage message) {
                            const auto its_gang = weak_gang.lock();
                            const auto its_task = weak_task.lock();
                            if (!its_gang || !its_task || its_task->line != weak_line.lock())
                              return;
                            tasks_.handle(its_gang, its_task, std::move(message));
                          },
                      .on_end =
                          [this, weak_gang, weak_task, weak_line](const std::string&) {
                            const auto its_gang = weak_gang.lock();
                            const auto its_task = weak_task.lock();
                            if (!its_gang || !its_task || its_task->line != weak_line.lock())
                              return;
                            lost(its_gang, its_task);
                          }});
}

/// Sends the orders that the muster-node of a started task has missed.
void NodeLines::continue_started(const GangPointer& gang, const TaskPointer& task) {
  if (!task->holds_task && task->start && !task->up) return starter_.order_again(gang, task);
  if (!task->holds_task && !task->end && !task->start) {
    return tasks_.lose(gang, task,
                       "its muster-node on " + gang->seat_of(*task).node + " has lost it");
  }
  if (gang->record.given_back) task->line->send(node::StopOrder{StopMode::kNow});
  if (task->stop_wish) task->line->send(node::StopOrder{*task->stop_wish});
  for (node::NodeOrder& waiting : std::exchange(task->orders, {})) task->line->send(waiting);
}

void NodeLines::lost(const GangPointer& gang, const TaskPointer& task) {
  const Line line = std::move(task->line);
  task->line = nullptr;
  loop_.post([line] {});  // a handler of it is running
  tasks_.line_lost(gang, task);
  if (gang->seat_of(*task).left || gang->stage == Stage::kOver) return queue_.schedule();
  if (gang->seat_of(*task).started) watch_silence(gang, task);
  queue_.poll_soon();
}

void NodeLines::watch_silence(const GangPointer& gang, const TaskPointer& task) {
  if (task->end) return;
  task->timer = loop_.after(
      kSilence, [this, weak_gang = std::weak_ptr(gang), weak_task = std::weak_ptr(task)] {
        const auto its_gang = weak_gang.lock();
        const auto its_task = weak_task.lock();
        if (!its_gang || !its_task) return;
        if (jobs_.task_is_silent(its_gang, its_task)) watch_silence(its_gang, its_task);
      });
}

}  // namespace muster::engine::slurm
