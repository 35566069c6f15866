#include "engine/slurm/node/attempt_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/files.h"
#include "base/log.h"
#include "base/unique_fd.h"

namespace muster::engine::slurm {

namespace fs = std::filesystem;

using base::Result;
using base::UniqueFd;

namespace {

/// Held while a job's folder is changed; it may go meanwhile.
UniqueFd lock_folder(const fs::path& folder) {
  UniqueFd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  while (opened && ::flock(opened.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return {};
  }
  return opened;
}

bool is_still(const fs::path& folder, const UniqueFd& opened) {
  struct stat here{};
  struct stat held{};
  return opened && ::fstat(opened.get(), &held) == 0 && ::stat(folder.c_str(), &here) == 0 &&
         here.st_ino == held.st_ino && here.st_dev == held.st_dev;
}

bool is_number(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
}

bool has_attempts(const fs::path& job) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(job, error)) {
    if (is_number(entry.path().filename().string())) return true;
  }
  return false;
}

void take_from_disk(const fs::path& path) {
  if (const auto removed = base::remove_tree(path); !removed) {
    base::log_error(removed.error().what);
  }
}

}  // namespace

Result<void> make_attempt_folder(const fs::path& jobs, const Gang& gang) {
  const fs::path job = jobs / gang.job_id;
  constexpr int kTries = 10;
  Result<void> made;
  for (int i = 0; i < kTries; ++i) {
    made = base::make_private_folder(job);
    if (!made && made.error().code != base::ErrorCode::kNotFound) return made;
    const UniqueFd lock = lock_folder(job);
    if (!is_still(job, lock)) continue;
    return base::make_private_folder(job / std::to_string(gang.attempt));
  }
  return made ? base::system_error("cannot make '" + job.string() + "'", EBUSY) : made;
}

void remove_task_folder(const fs::path& jobs, const Gang& gang, const std::string& task) {
  const fs::path job = jobs / gang.job_id;
  const fs::path attempt = job / std::to_string(gang.attempt);
  take_from_disk(attempt / task);
  const UniqueFd lock = lock_folder(job);
  ::rmdir(attempt.c_str());  // others may be in it
  if (!is_still(job, lock) || has_attempts(job)) return;
  take_from_disk(job);
  ::rmdir(jobs.c_str());
}

}  // namespace muster::engine::slurm
