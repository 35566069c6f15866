#include "engine/shim/task_limits.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "engine/shim/channels.h"
#include "engine/shim/process_tree.h"
#include "engine/shim/process_usage.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Result;

// --- limits that the kernel enforces

namespace {

constexpr const char* kProcs = "cgroup.procs";
// The kernel empties a control group some milliseconds after its last process has ended, and cgroups
// v1 report no such event, so the removal is tried again for half a second.
constexpr int kRemovals = 50;
constexpr std::chrono::milliseconds kRemovalPause{10};

/// A file of the kernel's: it is neither made nor truncated.
Result<void> write_setting(const fs::path& file, std::string_view value) {
  const base::UniqueFd opened(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (!opened || ::write(opened.get(), value.data(), value.size()) < 0) {
    return base::system_error("cannot write '" + std::string(value) + "' to " + file.string(),
                              errno);
  }
  return {};
}

/// The number in a file of one number, or behind `name` in a file of named numbers.
std::optional<uint64_t> number_of_group(const fs::path& file, std::string_view name = "") {
  const auto text = base::read_file(file, 1 << 16);
  if (!text) return std::nullopt;
  for (const std::string& line : base::split(*text, '\n')) {
    if (!name.empty() && !line.starts_with(std::string(name) + " ")) continue;
    return base::number_of<uint64_t>(line.substr(name.empty() ? 0 : name.size() + 1));
  }
  return std::nullopt;
}

bool is_of(const TaskGroup& group, const std::string& controller) {
  return std::any_of(group.settings.begin(), group.settings.end(), [&](const auto& setting) {
    return setting.first.starts_with(controller + ".");
  });
}

Result<void> limit_resource(int resource, int64_t most, const char* what) {
  if (most == 0) return {};
  rlimit limit{};
  ::getrlimit(static_cast<__rlimit_resource>(resource), &limit);
  // A limit is lowered, never raised: that takes a right that few have.
  limit.rlim_max = std::min(limit.rlim_max, static_cast<rlim_t>(most));
  limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
  if (::setrlimit(static_cast<__rlimit_resource>(resource), &limit) == 0) return {};
  return base::system_error(std::string("cannot limit the ") + what + " of the task", errno);
}

}  // namespace

bool TaskLimits::has_group(const std::string& controller) const {
  return std::any_of(groups.begin(), groups.end(),
                     [&](const TaskGroup& group) { return is_of(group, controller); });
}

Result<void> TaskGroups::make() const {
  for (const TaskGroup& group : groups_) {
    std::error_code error;
    fs::create_directories(group.folder, error);
    if (error) {
      return base::system_error("cannot make the control group " + group.folder, error.value());
    }
    for (const auto& [file, value] : group.settings) {
      MUSTER_CHECK(write_setting(fs::path(group.folder) / file, value));
    }
  }
  return {};
}

Result<void> TaskGroups::enter() const {
  std::error_code error;
  for (const TaskGroup& group : groups_) {
    if (!fs::is_directory(group.folder, error)) continue;
    MUSTER_CHECK(write_setting(fs::path(group.folder) / kProcs, "0"));
  }
  return {};
}

void TaskGroups::leave() const {
  for (const TaskGroup& group : groups_) {
    [[maybe_unused]] const auto left = write_setting(fs::path(group.home) / kProcs, "0");
  }
}

uint64_t TaskGroups::memory_kills() const {
  for (const TaskGroup& group : groups_) {
    for (const char* file : {"memory.oom_control", "memory.events"}) {
      const auto kills = number_of_group(fs::path(group.folder) / file, "oom_kill");
      if (kills) return *kills;
    }
  }
  return 0;
}

int64_t TaskGroups::memory_peak() const {
  for (const TaskGroup& group : groups_) {
    for (const char* file : {"memory.max_usage_in_bytes", "memory.peak"}) {
      if (const auto peak = number_of_group(fs::path(group.folder) / file)) {
        return static_cast<int64_t>(*peak);
      }
    }
  }
  return 0;
}

void TaskGroups::remove() const {
  for (const TaskGroup& group : groups_) {
    int tries = kRemovals;
    while (::rmdir(group.folder.c_str()) != 0 && errno == EBUSY && --tries > 0) {
      std::this_thread::sleep_for(kRemovalPause);
    }
    // The folder for all tasks goes with the last of them.
    ::rmdir(fs::path(group.folder).parent_path().c_str());
  }
}

Result<void> set_resource_limits(const TaskLimits& limits, bool is_own_user) {
  MUSTER_CHECK(limit_resource(RLIMIT_NOFILE, limits.open_files, "open files"));
  MUSTER_CHECK(limit_resource(RLIMIT_FSIZE, limits.file_bytes, "file sizes"));
  // Elsewhere the kernel counts all processes of the account, of whatever task.
  if (!is_own_user) return {};
  return limit_resource(RLIMIT_NPROC, limits.processes, "processes");
}

// --- limits that the shim measures

namespace {

// A program can allocate some 100 MiB meanwhile.
constexpr std::chrono::milliseconds kProcessPause{100};
constexpr std::chrono::milliseconds kScratchPause{1000};

/// "RssAnon:      124 kB" of /proc/PID/status, in bytes.
int64_t bytes_behind(std::string_view name, std::string_view status) {
  const size_t at = status.find(name);
  if (at == std::string_view::npos) return 0;
  std::string_view rest = status.substr(at + name.size());
  return static_cast<int64_t>(take_number(rest)) * 1024;
}

/// What the files of a folder occupy. A file that vanishes meanwhile counts nothing.
int64_t size_of_folder(const fs::path& folder) {
  int64_t bytes = 0;
  std::error_code error;
  fs::recursive_directory_iterator entries(folder, fs::directory_options::skip_permission_denied,
                                           error);
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    struct stat facts{};
    if (::lstat(entries->path().c_str(), &facts) == 0) bytes += int64_t{512} * facts.st_blocks;
  }
  return bytes;
}

/// Measuring takes at most a fiftieth of a CPU.
LimitWatch::Steady::time_point next_look(LimitWatch::Steady::time_point begin,
                                         std::chrono::milliseconds pause) {
  const auto end = LimitWatch::Steady::now();
  return std::max<LimitWatch::Steady::time_point>(begin + pause,
                                                  end + kRestForWork * (end - begin));
}

}  // namespace

std::string sentence_of(const Excess& excess) {
  switch (excess.kind) {
    case Excess::Kind::kMemory:
      return memory_sentence(excess.used, excess.limit);
    case Excess::Kind::kProcesses:
      return "it had " + std::to_string(excess.used) + " processes and threads; the limit is " +
             std::to_string(excess.limit) + " (tasks.processes)";
    case Excess::Kind::kScratch:
      break;
  }
  return "its scratch folders held " + base::format_bytes(excess.used) + "; the limit is " +
         base::format_bytes(excess.limit) + " (tasks.scratch)";
}

std::string memory_sentence(int64_t peak, int64_t limit) {
  const std::string text = "its memory limit is " + base::format_bytes(limit);
  return peak == 0 ? text : text + ", its peak was " + base::format_bytes(peak);
}

LimitWatch::LimitWatch(TaskLimits limits, pid_t root, fs::path proc)
    : limits_(std::move(limits)), root_(root), proc_(std::move(proc)) {
  const auto now = Steady::now();
  if (watches_processes()) processes_due_ = now;
  if (limits_.scratch_bytes > 0 && !limits_.scratch.empty()) scratch_due_ = now;
}

bool LimitWatch::watches_processes() const {
  return (limits_.memory_bytes > 0 && !limits_.has_group("memory")) ||
         (limits_.processes > 0 && !limits_.has_group("pids"));
}

int LimitWatch::milliseconds_to_wait() const {
  int wait = -1;
  for (const auto& due : {processes_due_, scratch_due_}) {
    if (due) wait = sooner(wait, milliseconds_of(*due - Steady::now()));
  }
  return wait;
}

std::optional<Excess> LimitWatch::look() {
  const auto now = Steady::now();
  std::optional<Excess> excess;
  if (processes_due_ && *processes_due_ <= now) {
    excess = look_at_processes();
    processes_due_ = next_look(now, kProcessPause);
  }
  if (!excess && scratch_due_ && *scratch_due_ <= now) {
    excess = look_at_scratch();
    scratch_due_ = next_look(Steady::now(), kScratchPause);
  }
  return excess;
}

std::optional<Excess> LimitWatch::look_at_processes() {
  const ProcessChildren children(proc_, root_);
  int64_t memory = 0;
  int64_t threads = 0;
  std::vector<std::pair<pid_t, uint64_t>> open{{root_, 1}};
  while (!open.empty()) {
    const auto [parent, parent_threads] = open.back();
    open.pop_back();
    for (const pid_t pid : children.of(parent, parent_threads)) {
      const std::string status = read_proc_file(proc_ / std::to_string(pid) / "status");
      memory += bytes_behind("RssAnon:", status) + bytes_behind("RssShmem:", status);
      const size_t at = status.find("Threads:");
      std::string_view count =
          at == std::string::npos ? "1" : std::string_view(status).substr(at + 8);
      const uint64_t own = std::max<uint64_t>(take_number(count), 1);
      threads += static_cast<int64_t>(own);
      open.emplace_back(pid, own);
    }
  }
  memory_peak_ = std::max(memory_peak_, memory);
  if (limits_.memory_bytes > 0 && !limits_.has_group("memory") && memory > limits_.memory_bytes) {
    return Excess{.kind = Excess::Kind::kMemory, .used = memory, .limit = limits_.memory_bytes};
  }
  if (limits_.processes > 0 && !limits_.has_group("pids") && threads > limits_.processes) {
    return Excess{.kind = Excess::Kind::kProcesses, .used = threads, .limit = limits_.processes};
  }
  return std::nullopt;
}

std::optional<Excess> LimitWatch::look_at_scratch() {
  int64_t bytes = 0;
  for (const std::string& folder : limits_.scratch) bytes += size_of_folder(folder);
  if (bytes <= limits_.scratch_bytes) return std::nullopt;
  return Excess{.kind = Excess::Kind::kScratch, .used = bytes, .limit = limits_.scratch_bytes};
}

// --- kills by the kernel

namespace {

constexpr size_t kLongestCgroupFile = 1 << 20;

/// The number behind "oom_kill" in a file of such lines.
std::optional<uint64_t> count_in(const fs::path& file) {
  const auto text = base::read_file(file, kLongestCgroupFile);
  if (!text) return std::nullopt;
  for (const std::string& line : base::split(*text, '\n')) {
    constexpr std::string_view kName = "oom_kill ";
    if (line.starts_with(kName)) return base::number_of<uint64_t>(line.substr(kName.size()));
  }
  return std::nullopt;
}

/// The group of this process, as the kernel names it: in version 1's hierarchy of memory, or in
/// version 2's. Empty: it is in none.
std::string group_in(const std::vector<std::string>& cgroup, bool version_2) {
  for (const std::string& line : cgroup) {
    // NUMBER:CONTROLLERS:PATH
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::vector<std::string> names = base::split(controllers, ',');
    const bool has_memory = std::find(names.begin(), names.end(), "memory") != names.end();
    if (version_2 ? line.starts_with("0::") : has_memory) return line.substr(second + 1);
  }
  return "";
}

}  // namespace

uint64_t kills_on_machine(const fs::path& root) {
  return count_in(root / "proc/vmstat").value_or(0);
}

// A container may see its own group at the top of what is mounted, while the kernel names it from
// the machine's: the named place counts first, for at the top of the machine there is no count, or
// one of all.
std::optional<uint64_t> kills_in_group(const fs::path& root) {
  const auto text = base::read_file(root / "proc/self/cgroup", kLongestCgroupFile);
  if (!text) return std::nullopt;
  const std::vector<std::string> cgroup = base::split(*text, '\n');
  struct Place {
    fs::path mount;
    bool version_2;
    const char* file;
  };
  const Place places[] = {{root / "sys/fs/cgroup/memory", false, "memory.oom_control"},
                          {root / "sys/fs/cgroup", true, "memory.events"},
                          {root / "sys/fs/cgroup/unified", true, "memory.events"}};
  for (const Place& place : places) {
    const std::string group = group_in(cgroup, place.version_2);
    if (group.empty()) continue;
    for (const fs::path& folder : {place.mount / fs::path(group).relative_path(), place.mount}) {
      if (const auto count = count_in(folder / place.file)) return count;
    }
  }
  return std::nullopt;
}

}  // namespace muster::engine
