#include "engine/shim/limit_watch.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "engine/disk_use.h"
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
// With kRestForWork, a task with very many files could write for minutes without being measured.
constexpr int kRestForScratch = 5;

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

/// A file that processes of the task have open.
struct OpenFile {
  int64_t bytes = 0;  ///< on its disk
  bool is_deleted = false;
  fs::path process;  ///< the folder in /proc of a process that has it open
  std::string descriptor;
};

/// Adds the files on these disks that a process has open.
void add_open_files(const fs::path& process, const std::set<dev_t>& disks,
                    std::map<FileId, OpenFile>& files) {
  std::error_code error;
  fs::directory_iterator entries(process / "fd", error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    struct stat facts{};
    if (::stat(entries->path().c_str(), &facts) != 0) continue;
    if (!S_ISREG(facts.st_mode) || !disks.contains(facts.st_dev)) continue;
    files.insert({{facts.st_dev, facts.st_ino},
                  {.bytes = int64_t{512} * facts.st_blocks,
                   .is_deleted = facts.st_nlink == 0,
                   .process = process,
                   .descriptor = entries->path().filename().string()}});
  }
}

/// Whether the file lies below one of these folders. Its path is the one that its process sees,
/// which may have mounts of its own.
bool lies_below(const std::set<FileId>& folders, const OpenFile& file) {
  std::error_code error;
  const fs::path path = fs::read_symlink(file.process / "fd" / file.descriptor, error);
  // The kernel returns no path of more than 4,096 bytes. Programs have such paths only to hide files.
  if (error == std::errc::filename_too_long) return true;
  if (error || !path.is_absolute()) return false;
  for (fs::path folder = path.parent_path(); folder.has_relative_path();
       folder = folder.parent_path()) {
    struct stat facts{};
    const fs::path seen_from_here = file.process / "root" / folder.relative_path();
    if (::stat(seen_from_here.c_str(), &facts) != 0) continue;
    if (folders.contains({facts.st_dev, facts.st_ino})) return true;
  }
  return false;
}

/// The pause is `rest` times as long as the measurement, or longer: measuring takes at most a
/// `rest`-th of a CPU.
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
    const auto begin = Steady::now();
    excess = look_at_scratch();
    scratch_due_ = next_look(begin, kScratchPause, kRestForScratch);
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

// The open files are listed first: a file that is closed or deleted during the measurement is counted
// once.
std::optional<job::LimitReached> LimitWatch::look_at_scratch() {
  std::set<FileId> folders;
  std::set<dev_t> disks;
  for (const std::string& folder : limits_.scratch) {
    struct stat facts{};
    if (::stat(folder.c_str(), &facts) != 0) continue;
    folders.insert({facts.st_dev, facts.st_ino});
    disks.insert(facts.st_dev);
  }
  std::map<FileId, OpenFile> open;
  for (const TaskProcesses::Process& process : processes_.find()) {
    add_open_files(processes_.proc() / std::to_string(process.pid), disks, open);
  }
  int64_t bytes = 0;
  bool is_too_deep = false;
  for (const std::string& folder : limits_.scratch) {
    const DiskUse use = disk_use(folder, [&](const FileId& met) { open.erase(met); });
    bytes += use.bytes;
    is_too_deep = is_too_deep || use.is_too_deep;
  }
  for (const auto& [id, file] : open) {
    if (file.is_deleted || lies_below(folders, file)) bytes += file.bytes;
  }
  is_scratch_too_deep_ = is_too_deep;
  const bool is_above = bytes > limits_.scratch_bytes;
  if (!is_above && !is_too_deep) return std::nullopt;
  // The use of folders that are nested too deep is unknown.
  return job::LimitReached{
      .limit = job::Limit::kScratch, .bound = limits_.scratch_bytes, .peak = is_above ? bytes : 0};
}

}  // namespace muster::engine
