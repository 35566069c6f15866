#include "engine/shim/limit_watch.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "engine/shim/channels.h"
#include "engine/shim/process_tree.h"
#include "engine/shim/process_usage.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

// In this time a program can allocate about 100 MiB.
constexpr std::chrono::milliseconds kProcessPause{100};
constexpr std::chrono::milliseconds kScratchPause{1000};
// Where memory is close to its limit, a look must not come late.
constexpr int kRestWhileNearLimit = 5;

/// The value of a line such as "RssAnon:      124 kB" in /proc/PID/status, in bytes.
int64_t bytes_behind(std::string_view name, std::string_view status) {
  const size_t at = status.find(name);
  if (at == std::string_view::npos) return 0;
  std::string_view rest = status.substr(at + name.size());
  return static_cast<int64_t>(take_number(rest)) * 1024;
}

int64_t resident_in(std::string_view status) {
  return bytes_behind("RssAnon:", status) + bytes_behind("RssShmem:", status);
}

/// The resident memory of a process without files; shared memory counts in part.
int64_t share_of_memory(const fs::path& process) {
  const std::string shares = read_proc_file(process / "smaps_rollup");
  // Unreadable for this process, or the other process has just ended and has no resident memory.
  if (shares.empty()) return resident_in(read_proc_file(process / "status"));
  return bytes_behind("Pss_Anon:", shares) + bytes_behind("Pss_Shmem:", shares);
}

int64_t bytes_on_disk(const struct stat& facts) {
  return int64_t{512} * facts.st_blocks;
}

/// The disk space of the files in a folder; adds the disks that the folder lies on. A file that is
/// removed meanwhile counts as 0.
int64_t size_of_folder(const fs::path& folder, std::set<dev_t>& disks) {
  int64_t bytes = 0;
  std::error_code error;
  struct stat facts{};
  if (::stat(folder.c_str(), &facts) == 0) disks.insert(facts.st_dev);
  fs::recursive_directory_iterator entries(folder, fs::directory_options::skip_permission_denied,
                                           error);
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    if (::lstat(entries->path().c_str(), &facts) == 0) bytes += bytes_on_disk(facts);
  }
  return bytes;
}

/// The disk space of the deleted files that a process has open, without files that were counted
/// before. `descriptors`: its folder fd.
int64_t size_of_deleted(const fs::path& descriptors, const std::set<dev_t>& disks,
                        std::set<std::pair<dev_t, ino_t>>& counted) {
  int64_t bytes = 0;
  std::error_code error;
  fs::directory_iterator entries(descriptors, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    struct stat facts{};
    if (::stat(entries->path().c_str(), &facts) != 0) continue;
    const bool is_deleted =
        S_ISREG(facts.st_mode) && facts.st_nlink == 0 && disks.contains(facts.st_dev);
    if (is_deleted && counted.insert({facts.st_dev, facts.st_ino}).second) {
      bytes += bytes_on_disk(facts);
    }
  }
  return bytes;
}

/// Measuring takes at most a fiftieth of a CPU, or a `rest`-th.
LimitWatch::Steady::time_point next_look(LimitWatch::Steady::time_point begin,
                                         std::chrono::milliseconds pause, int rest = kRestForWork) {
  const auto end = LimitWatch::Steady::now();
  return std::max<LimitWatch::Steady::time_point>(begin + pause, end + rest * (end - begin));
}

}  // namespace

LimitWatch::LimitWatch(const TaskLimits& limits, pid_t root, fs::path proc,
                       std::chrono::milliseconds fork_pause)
    : limits_(limits), processes_(root, std::move(proc)), forks_(limits, fork_pause) {
  const auto now = Steady::now();
  if (watches_memory() || watches_processes()) processes_due_ = now;
  if (limits_.scratch_bytes > 0 && !limits_.scratch.empty()) scratch_due_ = now;
  if (forks_.is_needed()) forks_due_ = now;
}

bool LimitWatch::watches_memory() const {
  return limits_.memory_bytes > 0 && !limits_.has_group("memory") && !limits_.is_held_by_container;
}

bool LimitWatch::watches_processes() const {
  return limits_.processes > 0 && !limits_.has_group("pids") && !limits_.is_held_by_container;
}

int LimitWatch::milliseconds_to_wait() const {
  int wait = -1;
  for (const auto& due : {processes_due_, scratch_due_, forks_due_}) {
    if (due) wait = sooner(wait, milliseconds_of(*due - Steady::now()));
  }
  return wait;
}

std::optional<job::LimitReached> LimitWatch::look() {
  const auto now = Steady::now();
  std::optional<job::LimitReached> excess;
  if (processes_due_ && *processes_due_ <= now) {
    excess = look_at_processes();
    processes_due_ =
        next_look(now, kProcessPause, measures_shares_ ? kRestWhileNearLimit : kRestForWork);
  }
  if (!excess && scratch_due_ && *scratch_due_ <= now) {
    excess = look_at_scratch();
    scratch_due_ = next_look(Steady::now(), kScratchPause);
  }
  if (!excess && forks_due_ && *forks_due_ <= now) {
    excess = forks_.look(processes_, measured_processes_);
    forks_due_ = Steady::now() + forks_.pause();
  }
  return excess;
}

std::optional<job::LimitReached> LimitWatch::look_at_processes() {
  const std::vector<TaskProcesses::Process> all = processes_.find();
  int64_t memory = 0;
  int64_t threads = 0;
  for (const TaskProcesses::Process& process : all) {
    memory += resident_in(process.status);
    threads += static_cast<int64_t>(threads_in(process.status));
  }
  measures_shares_ = watches_memory() && memory > limits_.memory_bytes;
  if (measures_shares_) {
    memory = 0;
    for (const TaskProcesses::Process& process : all) {
      memory += share_of_memory(processes_.proc() / std::to_string(process.pid));
    }
  }
  measured_processes_ = threads;
  processes_peak_ = std::max(processes_peak_, threads);
  memory_peak_ = std::max(memory_peak_, memory);
  if (watches_memory() && memory > limits_.memory_bytes) {
    return job::LimitReached{
        .limit = job::Limit::kMemory, .bound = limits_.memory_bytes, .peak = memory};
  }
  if (watches_processes() && threads > limits_.processes_of_group()) {
    return job::LimitReached{
        .limit = job::Limit::kProcesses, .bound = limits_.processes, .peak = threads};
  }
  return std::nullopt;
}

std::optional<job::LimitReached> LimitWatch::processes_reached() const {
  const int64_t peak = std::max(processes_peak_, forks_.peak());
  if (limits_.user_processes == 0 || peak < limits_.user_processes) return std::nullopt;
  return job::LimitReached{.limit = job::Limit::kProcesses,
                           .bound = limits_.processes,
                           .peak = std::min(peak, limits_.processes)};
}

std::optional<job::LimitReached> LimitWatch::look_at_scratch() {
  std::set<dev_t> disks;
  int64_t bytes = 0;
  for (const std::string& folder : limits_.scratch) bytes += size_of_folder(folder, disks);
  std::set<std::pair<dev_t, ino_t>> deleted;
  for (const TaskProcesses::Process& process : processes_.find()) {
    bytes +=
        size_of_deleted(processes_.proc() / std::to_string(process.pid) / "fd", disks, deleted);
  }
  if (bytes <= limits_.scratch_bytes) return std::nullopt;
  return job::LimitReached{
      .limit = job::Limit::kScratch, .bound = limits_.scratch_bytes, .peak = bytes};
}

}  // namespace muster::engine
