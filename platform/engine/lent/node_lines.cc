#include "engine/lent/node_lines.h"

#include <chrono>
#include <string>
#include <utility>

#include "base/log.h"

namespace muster::engine::lent {

using node::Hello;
using node::NodeConnection;
using node::NodeMessage;

namespace {

/// Muster-nodes reconnect every few seconds. A node that cannot reach the server for this long
/// cannot be ordered to stop, either.
constexpr std::chrono::minutes kSilence{5};

/// Whether the muster-node holds the task of the present start, or of an unknown one. After a
/// failed start it may hold the task of that start, which has ended.
bool holds(const Hello& hello, const Seat& seat) {
  return hello.holds_task && (hello.start == 0 || hello.start == seat.start);
}

}  // namespace

void NodeLines::connected(Line line) {
  const Hello& hello = line->hello();
  if (hello.stream != 0) {
    const std::string job = line->gang().job_id;
    return orders_.arrived(job, hello.stream, std::move(line));
  }
  const GangPointer gang = lender_.gang_of(*line);
  if (gang == nullptr) return;
  for (const auto& [name, task] : gang->tasks) {
    const Seat& seat = gang->seat_of(*task);
    if (seat.component != hello.facts.component || seat.index != hello.facts.index) continue;
    // The muster-node belongs to a run that the cluster has forgotten and will end soon.
    if (holds(hello, seat) && !seat.started && !task->start) return;
    return greeted(gang, task, std::move(line));
  }
  base::log_warning("a muster-node on " + hello.facts.node + " calls for a task that job " +
                    gang->gang.job_id + " does not have");
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
  task->holds_task = holds(hello, seat);
  task->line = std::move(line);
  task->timer.reset();
  listen(gang, task);
  node::Welcome welcome{.start = seat.start};
  if (task->mirror && task->holds_task) {
    welcome.log_offset = task->mirror->log_offset();
    welcome.metrics_offset = task->mirror->metrics_offset();
  }
  task->line->send(welcome);
  if (seat.left || (gang->record.given_back && !seat.started) ||
      (gang->record.taken && !gang->record.queued_again)) {
    return tasks_.dismiss(gang, task);
  }
  if (seat.started) return continue_started(gang, task);
  if (is_new && gang->record.given) gangs_.save_soon(gang);
  lender_.on_ready(gang);
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
  if (task->pending_stop) task->line->send(node::StopOrder{*task->pending_stop});
  orders_.send_waiting(gang, task);
}

void NodeLines::lost(const GangPointer& gang, const TaskPointer& task) {
  const Line line = std::move(task->line);
  task->line = nullptr;
  loop_.post([line] {});  // a handler of it is running
  tasks_.line_lost(gang, task);
  const Seat& seat = gang->seat_of(*task);
  if (seat.started && !seat.left) watch_silence(gang, task);
  lender_.on_lost(gang, task);
}

void NodeLines::watch_silence(const GangPointer& gang, const TaskPointer& task) {
  if (task->end) return;
  task->timer = loop_.after(
      kSilence, [this, weak_gang = std::weak_ptr(gang), weak_task = std::weak_ptr(task)] {
        const auto its_gang = weak_gang.lock();
        const auto its_task = weak_task.lock();
        if (!its_gang || !its_task) return;
        if (lender_.on_silence(its_gang, its_task)) watch_silence(its_gang, its_task);
      });
}

}  // namespace muster::engine::lent
