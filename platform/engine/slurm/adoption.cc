// What an earlier server left: the records of its gangs, which say what was sent, and the folders
// of their tasks. Muster-nodes call by themselves; a task whose start was ordered runs as long as
// Slurm does not say that its job is over.
#include <filesystem>

#include "base/log.h"
#include "engine/folder/task_folder.h"
#include "engine/slurm/slurm_engine_impl.h"

namespace muster::engine {

namespace fs = std::filesystem;

using slurm::Stage;

void SlurmEngine::Impl::load_records() {
  for (auto& [name, record] : slurm::gang_records_in(options.folder)) {
    Stage stage = Stage::kQueued;
    if (record.slurm_job == 0) stage = Stage::kUnsure;
    if (record.given) stage = Stage::kThere;
    hold(name, std::move(record), stage);
  }
}

Found SlurmEngine::Impl::adopt(const Gang& name, const std::string& task_name) {
  begin();
  const TaskFolder folder = folder_of(name, task_name);
  const GangPointer gang = find(name);
  const TaskPointer task = find(name, task_name);
  const auto report_left = [this, name, task_name, folder] {
    soon([this, name, task_name, folder] { report(name, task_name, end_left_in(folder)); });
    return Found::kEnded;
  };
  // Whoever was told may not have got further.
  if (gang != nullptr && gang->record.taken && !gang->record.given_back && !gang->is_told) {
    gang->is_told = true;
    tell(gang, *gang->record.taken);
  }
  std::error_code ignored;
  if (task == nullptr || gang->record.taken) {
    const bool was_started = fs::exists(folder.running(), ignored) ||
                             fs::exists(folder.exit(), ignored) ||
                             (task != nullptr && gang->seat_of(*task).started);
    return was_started ? report_left() : Found::kNothing;
  }
  gang->wants_news = true;
  gang->is_told = true;
  const slurm::Seat& seat = gang->seat_of(*task);
  if (!seat.started) return Found::kNothing;
  if (task->is_reported || task->end) return Found::kEnded;
  task->up = task->answered = task->is_announced = true;  // whoever was here before has said so
  if (!seat.shares_folder) {
    auto mirror = Mirror::open(folder, options.log_quota);
    if (!mirror) {
      base::log_error("task " + task_name + " cannot be taken up: " + mirror.error().what);
      return Found::kNothing;
    }
    task->mirror.emplace(*std::move(mirror));
  }
  TaskEnded end = end_left_in(folder);
  // What a signal has ended Slurm may have sent it: what happened to its job is looked at first.
  const bool by_itself = !end.status.lost && !end.status.stopped && end.status.signal == 0;
  if (by_itself) {
    // Its muster-node may be waiting to be told that this is known.
    const bool may_have_more = seat.has_artifacts && !seat.shares_folder && !seat.left;
    if (!may_have_more) {
      soon([this, gang, task, end = std::move(end)] { ended(gang, task, end); });
    }
    return Found::kEnded;
  }
  if (task->line == nullptr) watch_silence(gang, task);
  poll_soon();
  return Found::kRunning;
}

}  // namespace muster::engine
