// What can be read of tasks: in their folders, which lie here or are copied here.
#include "base/files.h"
#include "base/log.h"
#include "engine/folder/task_folder.h"
#include "engine/slurm/slurm_engine_impl.h"

namespace muster::engine {

namespace fs = std::filesystem;

std::string SlurmEngine::mpi_of(const Gang& gang, const std::string& task) const {
  return mpi_in(impl_->folder_of(gang, task));
}

std::string SlurmEngine::generated_folder(const Gang& gang, std::string_view task,
                                          job::Sandbox sandbox) const {
  if (sandbox != job::Sandbox::kNone) return "/generated";
  const auto held = impl_->find(gang, std::string(task));
  const bool is_shared = held == nullptr ? impl_->options.sharing == node::Sharing::kYes
                                         : impl_->find(gang)->seat_of(*held).shares_folder;
  const fs::path jobs = impl_->folder_on_node(is_shared);
  return TaskFolder{jobs / gang.job_id / std::to_string(gang.attempt) / task}.generated().string();
}

void SlurmEngine::scrub(const Gang& gang) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(impl_->attempt_folder(gang), error)) {
    if (!entry.is_directory(error)) continue;
    const TaskFolder folder{entry.path()};
    fs::rename(folder.generated() / "ranks", folder.path / "ranks", error);
    // A shim that was killed leaves the socket "attach".
    for (const fs::path& gone : {folder.generated(), folder.plan(), folder.hosts(), folder.passwd(),
                                 folder.shadow(), folder.attach()}) {
      if (const auto removed = base::remove_tree(gone); !removed) {
        base::log_error(removed.error().what);
      }
    }
  }
}

Result<void> SlurmEngine::remove(const std::string& job_id) {
  return impl_->trees.remove(job_id);
}

void SlurmEngine::measure(const std::string& job_id, Measured done) {
  impl_->trees.measure(job_id, std::move(done));
}

Result<std::unique_ptr<LogCursor>> SlurmEngine::open_log(const Gang& gang,
                                                         const std::string& task) {
  return open_log_in(impl_->folder_of(gang, task), task);
}

/// A log that is written elsewhere, over a shared folder, is not seen to grow here: its muster-node
/// says so. What is written here is seen.
std::shared_ptr<void> SlurmEngine::watch_log(const Gang& gang, const std::string& task,
                                             std::function<void()> grown) {
  auto watcher = std::make_shared<std::function<void()>>(std::move(grown));
  const auto held = impl_->find(gang, task);
  if (held == nullptr) return watcher;
  held->log_watchers.push_back(watcher);
  return watcher;
}

MetricReader SlurmEngine::open_metrics(const Gang& gang, const std::string& task) {
  return MetricReader(impl_->folder_of(gang, task).metrics());
}

std::optional<fs::path> SlurmEngine::artifacts_folder(const std::string& job_id) const {
  const fs::path folder = impl_->job_folder(job_id) / "artifacts";
  std::error_code error;
  return fs::is_directory(folder, error) ? std::optional(folder) : std::nullopt;
}

std::vector<RankPlace> SlurmEngine::ranks(const Gang& gang,
                                          const std::vector<std::string>& tasks) const {
  std::vector<RankPlace> places;
  for (const std::string& task : tasks) {
    const auto found = ranks_in(impl_->folder_of(gang, task), task);
    places.insert(places.end(), found.begin(), found.end());
  }
  return places;
}

}  // namespace muster::engine
