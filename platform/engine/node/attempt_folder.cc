#include "engine/node/attempt_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/files.h"
#include "base/log.h"
#include "base/unique_fd.h"

namespace muster::engine::node {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;

namespace {

Result<void> check_shared_folder(const NodeBrief& brief) {
  constexpr size_t kLongestMark = 256;
  const fs::path folder(brief.folder);
  MUSTER_TRY(std::string mark, base::read_file(folder / brief.mark, kLongestMark));
  if (mark.ends_with('\n')) mark.pop_back();
  if (mark != brief.nonce) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "folder '" + brief.folder + "' belongs to another server"};
  }
  // access() is not reliable on a file system that maps users.
  std::string probe = (folder / ".muster-node-XXXXXX").string();
  const base::UniqueFd file(::mkostemp(probe.data(), O_CLOEXEC));
  if (!file) return base::system_error("cannot write in '" + brief.folder + "'", errno);
  ::unlink(probe.c_str());
  return {};
}

UniqueFd open_real_folder(const fs::path& folder) {
  return UniqueFd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// In /tmp, another user may have made a folder of this name first. The folder of a pod belongs to
/// root.
Result<void> check_jobs_folder(const fs::path& jobs) {
  struct stat status{};
  if (::lstat(jobs.c_str(), &status) != 0) {
    return base::system_error("cannot examine folder '" + jobs.string() + "'", errno);
  }
  const char* const advice = "remove it on the node, or choose another folder (slurm.node_folder)";
  if (!S_ISDIR(status.st_mode)) {
    return Error{.code = ErrorCode::kRefused,
                 .what = "'" + jobs.string() + "' is not a folder",
                 .advice = advice};
  }
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    return Error{.code = ErrorCode::kRefused,
                 .what = "folder '" + jobs.string() + "' belongs to another user",
                 .advice = advice};
  }
  return {};
}

/// Locks a job's folder for a change. The folder may be removed before the lock is taken.
UniqueFd lock_folder(const fs::path& folder) {
  UniqueFd opened = open_real_folder(folder);
  while (opened && ::flock(opened.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return {};
  }
  return opened;
}

bool is_still(const fs::path& folder, const UniqueFd& opened) {
  struct stat here{};
  struct stat held{};
  return opened && ::fstat(opened.get(), &held) == 0 && ::lstat(folder.c_str(), &here) == 0 &&
         here.st_ino == held.st_ino && here.st_dev == held.st_dev;
}

/// `job`: the opened folder of a job.
bool is_marked(const UniqueFd& job) {
  struct stat status{};
  return ::fstatat(job.get(), kJobMark, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISREG(status.st_mode);
}

/// Marks a new folder of a job as Muster's. A folder with other content stays unmarked: it may not
/// be Muster's. REQUIRES: `lock` is the lock of `job`.
Result<void> mark_if_new(const fs::path& job, const UniqueFd& lock) {
  std::error_code error;
  const bool is_new = fs::is_empty(job, error) && !error;
  if (!is_new || is_marked(lock)) return {};
  return base::write_new_file(job / kJobMark, "");
}

bool is_attempt_name(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
}

/// An attempt's folder has a shared lock by each process that uses it, and an exclusive one by the
/// process that removes it.
bool is_forsaken(const fs::path& attempt) {
  const UniqueFd opened = open_real_folder(attempt);
  return opened && ::flock(opened.get(), LOCK_EX | LOCK_NB) == 0;
}

Result<UniqueFd> hold_attempt(const fs::path& attempt) {
  UniqueFd opened = open_real_folder(attempt);
  if (opened && ::flock(opened.get(), LOCK_SH | LOCK_NB) == 0) return opened;
  return base::system_error("cannot lock '" + attempt.string() + "'", errno);
}

bool has_attempts(const fs::path& job) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(job, error)) {
    if (is_attempt_name(entry.path().filename().string())) return true;
  }
  return false;
}

void take_from_disk(const fs::path& path) {
  if (const auto removed = base::remove_tree(path); !removed) {
    base::log_error(removed.error().what);
  }
}

void remove_forsaken_attempts_of(const fs::path& job) {
  const UniqueFd lock = lock_folder(job);
  if (!is_still(job, lock) || !is_marked(lock)) return;
  std::vector<fs::path> attempts;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(job, error)) {
    if (is_attempt_name(entry.path().filename().string())) attempts.push_back(entry.path());
  }
  for (const fs::path& attempt : attempts) {
    if (!is_forsaken(attempt)) continue;
    base::log_warning("'" + attempt.string() +
                      "' was left behind by a muster-node that was killed");
    take_from_disk(attempt);
  }
  if (!has_attempts(job)) take_from_disk(job);
}

}  // namespace

Result<bool> shares_folder(const NodeBrief& brief) {
  if (brief.sharing == Sharing::kNo || brief.folder.empty() || brief.mark.empty()) return false;
  auto seen = check_shared_folder(brief);
  if (seen) return true;
  if (brief.sharing == Sharing::kAuto) return false;
  Error error = std::move(seen).error();
  error.what = "this node does not share the server's folder: " + error.what;
  error.advice = "mount it on the node at the same path, or let the server send files to nodes";
  return error;
}

Result<UniqueFd> make_attempt_folder(const fs::path& jobs, const GangId& gang) {
  const fs::path job = jobs / gang.job_id;
  constexpr int kTries = 10;
  std::optional<base::Error> error;
  for (int i = 0; i < kTries; ++i) {
    const auto made = base::make_private_folder(job);
    error = made ? std::nullopt : std::optional(made.error());
    if (error && error->code != base::ErrorCode::kNotFound) return *error;
    if (error) continue;
    MUSTER_CHECK(check_jobs_folder(jobs));
    const UniqueFd lock = lock_folder(job);
    if (!is_still(job, lock)) continue;
    MUSTER_CHECK(mark_if_new(job, lock));
    const fs::path attempt = job / std::to_string(gang.attempt);
    MUSTER_CHECK(base::make_private_folder(attempt));
    return hold_attempt(attempt);
  }
  return error.value_or(base::system_error("cannot make '" + job.string() + "'", EBUSY));
}

void remove_forsaken_attempts(const fs::path& jobs) {
  std::vector<fs::path> all;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(jobs, error)) {
    if (fs::is_directory(entry.symlink_status(error))) all.push_back(entry.path());
  }
  for (const fs::path& job : all) remove_forsaken_attempts_of(job);
}

void remove_task_folder(const fs::path& jobs, const GangId& gang, const std::string& task,
                        bool keeps_artifacts) {
  const fs::path job = jobs / gang.job_id;
  const fs::path attempt = job / std::to_string(gang.attempt);
  take_from_disk(attempt / task);
  const UniqueFd lock = lock_folder(job);
  ::rmdir(attempt.c_str());  // fails if other tasks are in it
  if (!is_still(job, lock)) return;
  if (keeps_artifacts) ::unlinkat(lock.get(), kJobMark, 0);
  if (has_attempts(job)) return;
  if (keeps_artifacts) take_from_disk(job / "trees");
  if (is_marked(lock)) {
    take_from_disk(job);
  } else {
    ::rmdir(job.c_str());
  }
  ::rmdir(jobs.c_str());
}

}  // namespace muster::engine::node
