#include "engine/shim/task_groups.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <set>
#include <thread>

#include "base/files.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "engine/shim/process_tree.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Result;

namespace {

constexpr const char* kProcs = "cgroup.procs";
// The kernel empties a control group some milliseconds after its last process has ended, and
// cgroups v1 report no such event, so the removal is tried again for half a second.
constexpr int kRemovals = 50;
constexpr std::chrono::milliseconds kRemovalPause{10};

/// Writes a value to a file of the kernel, which must not be created or truncated.
Result<void> write_setting(const fs::path& file, std::string_view value) {
  const base::UniqueFd opened(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (!opened || ::write(opened.get(), value.data(), value.size()) < 0) {
    return base::system_error("cannot write '" + std::string(value) + "' to " + file.string(),
                              errno);
  }
  return {};
}

/// Moves this thread, and so what it forks from then on, into the control group `folder`.
///
/// Version 1 has a file for threads, version 2 moves the whole process. To move another process or
/// all threads of one, the kernel takes a lock that every fork and every exit on the machine takes,
/// too, and the processes of a fork bomb hold that lock for long. It takes no lock for a thread that
/// moves itself (cgroup_procs_write_start() in Linux, since 5.4).
Result<void> move_into(const fs::path& folder) {
  std::error_code error;
  const fs::path threads = folder / "tasks";
  return write_setting(fs::exists(threads, error) ? threads : folder / kProcs, "0");
}

/// The number in a file that contains one number, or the number after `name` in a file of named
/// numbers.
std::optional<uint64_t> number_of_group(const fs::path& file, std::string_view name = "") {
  const auto text = base::read_file(file, 1 << 16);
  if (!text) return std::nullopt;
  for (const std::string& line : base::split(*text, '\n')) {
    if (!name.empty() && !line.starts_with(std::string(name) + " ")) continue;
    return base::number_of<uint64_t>(line.substr(name.empty() ? 0 : name.size() + 1));
  }
  return std::nullopt;
}

}  // namespace

Result<void> TaskGroups::make() const {
  constexpr int kMostTries = 100;
  for (const TaskGroup& group : groups_) {
    std::error_code error;
    // Another shim removes the folder of all tasks' groups while that is empty (remove()).
    for (int tries = 0;
         tries == 0 || (error == std::errc::no_such_file_or_directory && tries < kMostTries);
         ++tries) {
      error.clear();
      fs::create_directories(group.folder, error);
    }
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
    MUSTER_CHECK(move_into(group.folder));
  }
  return {};
}

void TaskGroups::leave() const {
  for (const TaskGroup& group : groups_) {
    [[maybe_unused]] const auto left = move_into(group.holder.empty() ? group.home : group.holder);
  }
}

void TaskGroups::go_home() const {
  for (const TaskGroup& group : groups_) {
    [[maybe_unused]] const auto left = move_into(group.home);
  }
}

// Version 1 has no file cgroup.kill. A process that is killed forks no more, so the loop ends when
// all have been killed; the bound is for a list that cannot be read as a whole.
void TaskGroups::kill() const {
  constexpr int kMostPasses = 100;
  for (const TaskGroup& group : groups_) {
    if (write_setting(fs::path(group.folder) / "cgroup.kill", "1")) continue;
    std::set<pid_t> killed;
    bool found = true;
    for (int passes = 0; found && passes < kMostPasses; ++passes) {
      const std::string text = read_proc_file(fs::path(group.folder) / kProcs);
      std::string_view rest = text;
      found = false;
      while (const auto pid = base::number_of<pid_t>(take_word(rest))) {
        if (*pid <= 0 || *pid == ::getpid() || !killed.insert(*pid).second) continue;
        ::kill(*pid, SIGKILL);
        found = true;
      }
    }
  }
}

std::vector<pid_t> TaskGroups::processes() const {
  std::vector<pid_t> found;
  for (const TaskGroup& group : groups_) {
    if (!group.is_of("pids")) continue;
    const std::string text = read_proc_file(fs::path(group.folder) / kProcs);
    std::string_view rest = text;
    while (const auto pid = base::number_of<pid_t>(take_word(rest))) found.push_back(*pid);
  }
  return found;
}

std::optional<int64_t> TaskGroups::count_processes() const {
  return number({"pids.current"});
}

int64_t TaskGroups::refused_processes() const {
  return number({"pids.events"}, "max").value_or(0);
}

int64_t TaskGroups::killed_processes() const {
  return number({"memory.oom_control", "memory.events"}, "oom_kill").value_or(0);
}

/// The first of `files` that one of the groups has.
std::optional<int64_t> TaskGroups::number(std::initializer_list<const char*> files,
                                          std::string_view name) const {
  for (const TaskGroup& group : groups_) {
    for (const char* file : files) {
      const auto found = number_of_group(fs::path(group.folder) / file, name);
      if (found) return static_cast<int64_t>(*found);
    }
  }
  return std::nullopt;
}

std::optional<job::LimitReached> TaskGroups::reached(const TaskLimits& limits) const {
  if (killed_processes() > 0) {
    const int64_t peak = number({"memory.max_usage_in_bytes", "memory.peak"}).value_or(0);
    // The kernel counts memory in batches for each CPU.
    const bool is_own = peak == 0 || peak >= limits.memory_bytes - limits.memory_bytes / 16;
    return job::LimitReached{
        .limit = job::Limit::kMemory, .bound = is_own ? limits.memory_bytes : 0, .peak = peak};
  }
  // Of Muster's own processes, which RLIMIT_NPROC does not count, at least one is in the group.
  const int64_t peak = number({"pids.peak"}).value_or(0);
  const bool had_all = limits.user_processes > 0 && peak > limits.user_processes;
  if (refused_processes() > 0 || had_all) {
    return job::LimitReached{.limit = job::Limit::kProcesses,
                             .bound = limits.processes,
                             .peak = std::min(peak, limits.processes)};
  }
  return std::nullopt;
}

namespace {

/// Whether the folder is gone.
bool remove_group(const fs::path& folder) {
  return ::rmdir(folder.c_str()) == 0 || errno == ENOENT;
}

}  // namespace

bool TaskGroups::remove() const {
  bool all = true;
  for (const TaskGroup& group : groups_) {
    fs::path above = fs::path(group.folder).parent_path();
    bool is_gone = remove_group(group.folder);
    if (!group.holder.empty()) {
      is_gone = is_gone && remove_group(group.holder);
      above = above.parent_path();
    }
    // The folder that contains all tasks' groups is removed with the last group.
    ::rmdir(above.c_str());
    all = all && is_gone;
  }
  return all;
}

void TaskGroups::remove_soon() const {
  for (int tries = kRemovals; !remove() && tries > 0; --tries) {
    std::this_thread::sleep_for(kRemovalPause);
  }
}

// --- kills by the kernel

namespace {

constexpr size_t kLongestCgroupFile = 1 << 20;

/// The number after "oom_kill" in a file of lines "NAME NUMBER".
std::optional<uint64_t> count_in(const fs::path& file) {
  const auto text = base::read_file(file, kLongestCgroupFile);
  if (!text) return std::nullopt;
  for (const std::string& line : base::split(*text, '\n')) {
    constexpr std::string_view kName = "oom_kill ";
    if (line.starts_with(kName)) return base::number_of<uint64_t>(line.substr(kName.size()));
  }
  return std::nullopt;
}

/// The path of this process's group, in the memory hierarchy of version 1 or in version 2. Empty:
/// the process is in no such group.
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

/// The first number that `number_in` finds in one of these files of the group of this process.
std::optional<uint64_t> number_in_group(
    const fs::path& root, const char* version_1, const char* version_2,
    const std::function<std::optional<uint64_t>(const fs::path&)>& number_in) {
  const auto text = base::read_file(root / "proc/self/cgroup", kLongestCgroupFile);
  if (!text) return std::nullopt;
  const std::vector<std::string> cgroup = base::split(*text, '\n');
  struct GroupFile {
    fs::path mount;
    bool version_2;
    const char* file;
  };
  const GroupFile places[] = {{root / "sys/fs/cgroup/memory", false, version_1},
                              {root / "sys/fs/cgroup", true, version_2},
                              {root / "sys/fs/cgroup/unified", true, version_2}};
  for (const GroupFile& place : places) {
    const std::string group = group_in(cgroup, place.version_2);
    if (group.empty()) continue;
    for (const fs::path& folder : {place.mount / fs::path(group).relative_path(), place.mount}) {
      if (const auto count = number_in(folder / place.file)) return count;
    }
  }
  return std::nullopt;
}

}  // namespace

uint64_t kills_on_machine(const fs::path& root) {
  return count_in(root / "proc/vmstat").value_or(0);
}

// A container may see its own group at the top of the mount, while the kernel gives the group's
// path from the machine's top. So the path of the group is tried first, and the top of the mount
// second: on a machine, the top has no count, or the count of all groups.
std::optional<uint64_t> kills_in_group(const fs::path& root) {
  return number_in_group(root, "memory.oom_control", "memory.events", count_in);
}

int64_t memory_peak_of_group(const fs::path& root) {
  const auto peak = number_in_group(root, "memory.max_usage_in_bytes", "memory.peak",
                                    [](const fs::path& file) { return number_of_group(file); });
  return static_cast<int64_t>(peak.value_or(0));
}

}  // namespace muster::engine
