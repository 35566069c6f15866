#include "engine/lent/lent_tasks.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "engine/folder/task_folder.h"

namespace muster::engine::lent {

namespace fs = std::filesystem;

LentTasks::LentTasks(base::EventLoop& its_loop, LentOptions its_options, GangTable::Options table)
    : loop(its_loop), options(std::move(its_options)), gangs(its_loop, std::move(table)) {}

void LentTasks::start(const GangId& gang, std::vector<launch::TaskPlan> plans, Engine::Done done,
                      std::vector<std::pair<std::string, std::string>> hosts) {
  starter.start(gang, std::move(plans), std::move(done), std::move(hosts));
}

void LentTasks::stop(const GangId& gang, const std::vector<std::string>& names, StopMode mode) {
  starter.stop(gang, names);
  const GangPointer held = gangs.find(gang);
  for (const std::string& name : names) {
    const TaskPointer task = gangs.find(gang, name);
    if (task != nullptr) tasks.stop(held, task, mode);
  }
}

// --- adoption: a task whose start was ordered counts as running until the cluster reports
// otherwise

AdoptionResult LentTasks::adopt(const GangId& name, const std::string& task_name) {
  const TaskFolder folder = gangs.folder_of(name, task_name);
  const GangPointer gang = gangs.find(name);
  const TaskPointer task = gangs.find(name, task_name);
  // The caller may have crashed before it handled the report.
  if (gang != nullptr && gang->record.taken && !gang->record.given_back && !gang->is_announced) {
    gang->is_announced = true;
    reports.announce(name, *gang->record.taken);
  }
  if (task != nullptr && !gang->record.taken) {
    gang->is_awaited = true;
    gang->is_announced = true;
    if (!gang->seat_of(*task).started) return AdoptionResult::kNothing;
    return adopt_started(gang, task);
  }
  std::error_code ignored;
  const bool was_started = fs::exists(folder.running(), ignored) ||
                           fs::exists(folder.exit(), ignored) ||
                           (task != nullptr && gang->seat_of(*task).started);
  if (!was_started) return AdoptionResult::kNothing;
  reports.post(
      [this, name, task_name, folder] { reports.task(name, task_name, end_left_in(folder)); });
  return AdoptionResult::kEnded;
}

AdoptionResult LentTasks::adopt_started(const GangPointer& gang, const TaskPointer& task) {
  const TaskFolder folder = gangs.folder_of(gang->gang, task->name);
  const Seat& seat = gang->seat_of(*task);
  if (task->is_reported || task->end) return AdoptionResult::kEnded;
  task->up = task->answered = task->is_answer_reported = true;  // by the earlier server
  if (!seat.shares_folder) {
    auto mirror = Mirror::open(folder, options.log_quota);
    if (!mirror) {
      base::log_error("cannot take over task " + task->name + ": " + mirror.error().what);
      return AdoptionResult::kNothing;
    }
    task->mirror.emplace(*std::move(mirror));
  }
  TaskEnded end = end_left_in(folder);
  // The cluster may have sent the signal that ended a task: the reason is determined first.
  if (is_own_end(end.status)) {
    // Otherwise its muster-node waits for the order to send the artifacts.
    task->ended_earlier = seat.has_artifacts && !seat.shares_folder && !seat.left;
    if (!task->ended_earlier) {
      reports.post([this, gang, task, end = std::move(end)] { tasks.ended(gang, task, end); });
    }
    return AdoptionResult::kEnded;
  }
  if (task->line == nullptr) lines.watch_silence(gang, task);
  lender.look_soon();
  return AdoptionResult::kRunning;
}

// --- folders: the tasks' own, or copies of them

void LentTasks::scrub(const GangId& gang) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(gangs.attempt_folder(gang), error)) {
    if (!entry.is_directory(error)) continue;
    const TaskFolder folder{entry.path()};
    fs::rename(folder.generated() / "ranks", folder.path / "ranks", error);
    // A killed shim leaves its socket "attach" behind.
    for (const fs::path& gone : {folder.generated(), folder.plan(), folder.hosts(), folder.passwd(),
                                 folder.shadow(), folder.attach()}) {
      if (const auto removed = base::remove_tree(gone); !removed) {
        base::log_error(removed.error().what);
      }
    }
  }
}

Result<std::unique_ptr<LogCursor>> LentTasks::open_log(const GangId& gang,
                                                       const std::string& task) const {
  return open_log_in(gangs.folder_of(gang, task), task);
}

/// A log on a shared file system that another machine writes cannot be watched here: its
/// muster-node reports that it has grown.
std::shared_ptr<void> LentTasks::watch_log(const GangId& gang, const std::string& task,
                                           std::function<void()> grown) {
  auto watcher = std::make_shared<std::function<void()>>(std::move(grown));
  const auto held = gangs.find(gang, task);
  if (held != nullptr) held->log_watchers.push_back(watcher);
  return watcher;
}

MetricReader LentTasks::open_metrics(const GangId& gang, const std::string& task) const {
  return MetricReader(gangs.folder_of(gang, task).metrics());
}

std::optional<fs::path> LentTasks::artifacts_folder(const std::string& job_id) const {
  return artifacts_in(gangs.job_folder(job_id));
}

std::string LentTasks::mpi_of(const GangId& gang, const std::string& task) const {
  return mpi_in(gangs.folder_of(gang, task));
}

std::vector<RankPlace> LentTasks::ranks(const GangId& gang,
                                        const std::vector<std::string>& names) const {
  return ranks_in(gangs.attempt_folder(gang), names);
}

}  // namespace muster::engine::lent
