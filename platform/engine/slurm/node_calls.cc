#include "engine/slurm/node_calls.h"

#include <string>
#include <utility>

#include "base/log.h"

namespace muster::engine::slurm {

using node::Hello;

lent::Lender NodeCalls::lender() {
  return {
      .cluster = "Slurm",
      .gang_of = [this](const node::NodeConnection& line) { return gang_of(line); },
      .has_allocation =
          [](const lent::GangPointer& gang) { return in_slurm(gang)->stage == Stage::kAllocated; },
      .on_ready =
          [this](const lent::GangPointer& gang) {
            allocations_.report_if_complete(in_slurm(gang));
          },
      .on_lost = [this](const lent::GangPointer& gang,
                        const TaskPointer& task) { lost(in_slurm(gang), task); },
      .on_silence =
          [this](const lent::GangPointer& gang, const TaskPointer& task) {
            return jobs_.task_is_silent(in_slurm(gang), task);
          },
      .connect_stream = nullptr,
      .on_change = [this] { queue_.changed(); },
      .look_soon = [this] { queue_.poll_soon(); },
      .looks = [this] { return queue_.polls(); },
      .may_explain = [this](const lent::GangPointer& gang,
                            const TaskPointer& task) { return may_explain(in_slurm(gang), task); }};
}

node::HubOptions NodeCalls::hub_options(lent::NodeLines& lines) {
  return {
      .key_of = [this](const GangId& caller) -> std::optional<rsh::Key> {
        const GangPointer gang = gangs_.current_of(caller);
        if (gang == nullptr) return std::nullopt;
        return gang->record.key;
      },
      .on_connection = [&lines](lent::NodeLines::Line line) { lines.connected(std::move(line)); }};
}

lent::GangPointer NodeCalls::gang_of(const node::NodeConnection& line) {
  GangPointer gang = gangs_.current_of(line.gang());
  if (gang == nullptr || !belongs_to(gang, line.hello())) return nullptr;
  return gang;
}

/// Whether the muster-node is of the gang's Slurm job, in its current run.
bool NodeCalls::belongs_to(const GangPointer& gang, const Hello& hello) {
  if (hello.facts.restarts < gang->job.restarts) return false;
  if (gang->job.id == 0) {
    // The muster-node has called before the answer to the submission, or the answer was lost.
    gang->job.id = hello.facts.allocation;
    if (gang->stage == Stage::kSending || gang->stage == Stage::kUnsure ||
        gang->stage == Stage::kUnsent) {
      gang->stage = Stage::kQueued;
    }
    gang->submitted_at_poll = queue_.polls();
    gangs_.save(gang);
  }
  if (hello.facts.allocation != gang->job.id) {
    base::log_warning("muster-node of Slurm job " + std::to_string(hello.facts.allocation) +
                      " calls for a gang that runs as job " + std::to_string(gang->job.id));
    return false;
  }
  if (hello.facts.restarts > gang->job.restarts) {
    // Slurm has started the job again. The next listing will show this, and is handled then.
    if (gang->stage != Stage::kQueued) {
      queue_.poll_soon();
      return false;
    }
    gang->job.restarts = hello.facts.restarts;
    for (const auto& [name, task] : gang->tasks) task->line.reset();
    gangs_.save(gang);
  }
  return true;
}

void NodeCalls::lost(const GangPointer& gang, const TaskPointer& task) {
  if (gang->seat_of(*task).left || gang->stage == Stage::kOver) return queue_.schedule();
  queue_.poll_soon();
}

/// A step that cannot be killed, or a busy controller, may delay Slurm for minutes.
bool NodeCalls::may_explain(const GangPointer& gang, const TaskPointer& task) const {
  const auto& listed = gang->listed;
  const bool is_ending = listed && listed->state == JobState::kCompleting;
  const bool is_sure = !task->suspicion;
  return is_ending || (queue_.away_since() && is_sure);
}

}  // namespace muster::engine::slurm
