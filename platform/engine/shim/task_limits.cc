#include "engine/shim/task_limits.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
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

bool is_of(const TaskGroup& group, const std::string& controller) {
  return std::any_of(group.settings.begin(), group.settings.end(), [&](const auto& setting) {
    return setting.first.starts_with(controller + ".");
  });
}

Result<void> limit_resource(int resource, int64_t most, const char* what) {
  if (most == 0) return {};
  rlimit limit{};
  ::getrlimit(static_cast<__rlimit_resource>(resource), &limit);
  // The hard limit is only ever lowered: raising it requires CAP_SYS_RESOURCE.
  limit.rlim_max = std::min(limit.rlim_max, static_cast<rlim_t>(most));
  limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
  if (::setrlimit(static_cast<__rlimit_resource>(resource), &limit) == 0) return {};
  return base::system_error(std::string("cannot limit the ") + what + " of the task", errno);
}

/// This process; no CPUs: it stays where it is.
Result<void> bind_to(const std::vector<int>& cpus) {
  if (cpus.empty()) return {};
  const int most = *std::max_element(cpus.begin(), cpus.end()) + 1;
  const size_t bytes = CPU_ALLOC_SIZE(most);
  std::vector<unsigned char> bits(bytes, 0);
  auto* const mask = reinterpret_cast<cpu_set_t*>(bits.data());
  for (const int cpu : cpus) CPU_SET_S(static_cast<size_t>(cpu), bytes, mask);
  if (::sched_setaffinity(0, bytes, mask) == 0) return {};
  return base::system_error("cannot bind the task to its CPUs", errno);
}

}  // namespace

bool TaskLimits::has_group(const std::string& controller) const {
  return std::any_of(groups.begin(), groups.end(),
                     [&](const TaskGroup& group) { return is_of(group, controller); });
}

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
    if (!is_of(group, "pids")) continue;
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

Result<void> set_resource_limits(const TaskLimits& limits) {
  MUSTER_CHECK(bind_to(limits.cpus));
  MUSTER_CHECK(limit_resource(RLIMIT_NOFILE, limits.open_files, "open files"));
  MUSTER_CHECK(limit_resource(RLIMIT_FSIZE, limits.file_bytes, "file sizes"));
  if (limits.niceness > 0 && ::setpriority(PRIO_PROCESS, 0, limits.niceness) != 0) {
    return base::system_error("cannot set the nice value of the task", errno);
  }
  return limit_resource(RLIMIT_NPROC, limits.user_processes, "processes");
}

// --- limits that the shim measures

namespace {

// In this time a program can allocate about 100 MiB.
constexpr std::chrono::milliseconds kProcessPause{100};
constexpr std::chrono::milliseconds kScratchPause{1000};
// Between two looks for a fork bomb. A program that waits before it tries again is refused some times
// a second, a fork bomb some hundred times for each CPU.
constexpr int64_t kMostRefusals = 25;
// Of the 25 ticks of a CPU between two looks: a task can have a small share of the CPUs.
constexpr uint64_t kTicksOfBomb = 3;
constexpr uint64_t kSystemForUser = 3;
// Of the processes that a task may have, some are just in the making, which takes long in a bomb: 110
// of 1024 on a machine under load.
constexpr int64_t kPartInTheMaking = 4;
constexpr int kPauseOfStopped = 4;  ///< looks
// A program that replaces a killed process fills its memory first.
constexpr int64_t kMostKills = 5;
constexpr int kLooksAtBomb = 3;

/// The value of a line such as "RssAnon:      124 kB" in /proc/PID/status, in bytes.
int64_t bytes_behind(std::string_view name, std::string_view status) {
  const size_t at = status.find(name);
  if (at == std::string_view::npos) return 0;
  std::string_view rest = status.substr(at + name.size());
  return static_cast<int64_t>(take_number(rest)) * 1024;
}

uint64_t threads_in(std::string_view status) {
  const size_t at = status.find("Threads:");
  if (at == std::string_view::npos) return 1;
  std::string_view count = status.substr(at + 8);
  return std::max<uint64_t>(take_number(count), 1);
}

int64_t resident_in(std::string_view status) {
  return bytes_behind("RssAnon:", status) + bytes_behind("RssShmem:", status);
}

/// What a process has resident without files; memory that it shares counts in part.
int64_t share_of_memory(const fs::path& process) {
  const std::string shares = read_proc_file(process / "smaps_rollup");
  // This process may not read it, or the other one has just ended, and then has nothing resident.
  if (shares.empty()) return resident_in(read_proc_file(process / "status"));
  return bytes_behind("Pss_Anon:", shares) + bytes_behind("Pss_Shmem:", shares);
}

/// "pid:[4026531836]"; empty: this process may not see it.
fs::path pid_namespace_of(const fs::path& process) {
  std::error_code error;
  return fs::read_symlink(process / "ns/pid", error);
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

/// What files occupy that a process has open and that have no name any more, but for those that
/// were counted before. `descriptors`: its folder fd.
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

constexpr int kLooksUntilForgotten = 50;

// Where memory is close to its limit, a look must not come late.
constexpr int kRestWhileNearLimit = 5;

/// Measuring takes at most a fiftieth of a CPU, or a `rest`-th.
LimitWatch::Steady::time_point next_look(LimitWatch::Steady::time_point begin,
                                         std::chrono::milliseconds pause, int rest = kRestForWork) {
  const auto end = LimitWatch::Steady::now();
  return std::max<LimitWatch::Steady::time_point>(begin + pause, end + rest * (end - begin));
}

}  // namespace

LimitWatch::LimitWatch(TaskLimits limits, pid_t root, fs::path proc,
                       std::chrono::milliseconds fork_pause)
    : limits_(std::move(limits)), root_(root), proc_(std::move(proc)), fork_pause_(fork_pause) {
  const auto now = Steady::now();
  if (watches_memory() || watches_processes()) processes_due_ = now;
  if (limits_.scratch_bytes > 0 && !limits_.scratch.empty()) scratch_due_ = now;
  const bool has_counts = limits_.user_processes > 0 ||
                          (limits_.processes > 0 && limits_.has_group("pids")) ||
                          (limits_.memory_bytes > 0 && limits_.has_group("memory"));
  if (has_counts) forks_due_ = now;
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
    excess = look_at_forks();
    forks_due_ = Steady::now() + (is_stopped_ ? kPauseOfStopped : 1) * fork_pause_;
  }
  return excess;
}

std::vector<LimitWatch::Process> LimitWatch::processes() {
  const ProcessChildren children(proc_, root_);
  std::vector<Process> all;
  std::vector<std::pair<pid_t, uint64_t>> open{{root_, 1}};
  while (!open.empty()) {
    const auto [parent, threads] = open.back();
    open.pop_back();
    for (const pid_t pid : children.of(parent, threads)) {
      std::string status = read_proc_file(proc_ / std::to_string(pid) / "status");
      open.emplace_back(pid, threads_in(status));
      all.push_back({pid, std::move(status)});
    }
  }
  add_processes_beside(all);
  return all;
}

/// Adds the programs of exec: they are in the sandbox of the task, but not below its process.
void LimitWatch::add_processes_beside(std::vector<Process>& all) {
  const fs::path own = pid_namespace_of(proc_ / "self");
  fs::path sandbox;
  std::set<pid_t> known{root_};
  for (const Process& process : all) {
    known.insert(process.pid);
    if (!sandbox.empty()) continue;
    const fs::path name = pid_namespace_of(proc_ / std::to_string(process.pid));
    if (name != own) sandbox = name;
  }
  if (sandbox.empty()) return;
  // Most processes of the machine stay what they are; the kernel may give their numbers away later.
  if (++looks_beside_ % kLooksUntilForgotten == 0) strangers_.clear();
  for (const pid_t pid : numbered_entries(proc_)) {
    if (known.contains(pid) || strangers_.contains(pid)) continue;
    const fs::path folder = proc_ / std::to_string(pid);
    if (pid_namespace_of(folder) == sandbox) {
      all.push_back({pid, read_proc_file(folder / "status")});
    } else {
      strangers_.insert(pid);
    }
  }
}

std::optional<job::LimitReached> LimitWatch::look_at_processes() {
  const std::vector<Process> all = processes();
  int64_t memory = 0;
  int64_t threads = 0;
  for (const Process& process : all) {
    memory += resident_in(process.status);
    threads += static_cast<int64_t>(threads_in(process.status));
  }
  measures_shares_ = watches_memory() && memory > limits_.memory_bytes;
  if (measures_shares_) {
    memory = 0;
    for (const Process& process : all) {
      memory += share_of_memory(proc_ / std::to_string(process.pid));
    }
  }
  measured_processes_ = threads;
  processes_peak_ = std::max(processes_peak_, threads);
  measured_.clear();
  for (const Process& process : all) measured_.push_back(process.pid);
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

std::optional<job::LimitReached> LimitWatch::look_at_forks() {
  const TaskGroups groups(limits_.groups);
  if (is_stopped_) {
    go_on(groups);
    return std::nullopt;
  }
  const int64_t refused = groups.refused_processes();
  const int64_t killed = groups.killed_processes();
  const bool is_refused = refused - std::exchange(refused_, refused) > kMostRefusals;
  const bool is_bomb = is_forking_at_its_limit(groups) || is_refused;
  const bool is_filled_again = killed - std::exchange(killed_, killed) > kMostKills;
  looks_at_bomb_ = is_bomb || is_filled_again ? looks_at_bomb_ + 1 : 0;
  if (looks_at_bomb_ == 0) return std::nullopt;
  if (looks_at_bomb_ < kLooksAtBomb) {
    signal_all(groups, SIGSTOP);
    is_stopped_ = true;
    return std::nullopt;
  }
  end_in_parts(groups);
  if (!is_bomb) return groups.reached(limits_);
  const int64_t peak = processes_peak_ > 0 ? processes_peak_ : limits_.processes;
  return job::LimitReached{.limit = job::Limit::kProcesses,
                           .bound = limits_.processes,
                           .peak = std::min(peak, limits_.processes)};
}

/// Whether RLIMIT_NPROC refuses the task processes all the time. The kernel counts that nowhere, but
/// the processes of such a task hardly leave the kernel.
bool LimitWatch::is_forking_at_its_limit(const TaskGroups& groups) {
  if (limits_.user_processes == 0) return false;
  const auto count = groups.count_processes();
  if (count) processes_peak_ = std::max(processes_peak_, *count - 1);
  const int64_t all = limits_.user_processes;
  const int64_t has = count ? *count - 1 : measured_processes_;
  if (has < all - all / kPartInTheMaking) {
    ticks_ = {};
    return false;
  }
  const Ticks now = ticks_of(count ? groups.processes() : measured_);
  const Ticks before = std::exchange(ticks_, now);
  const uint64_t system = now.system - std::min(before.system, now.system);
  const uint64_t user = now.user - std::min(before.user, now.user);
  return system >= kTicksOfBomb && system > kSystemForUser * user;
}

std::vector<pid_t> LimitWatch::current_processes(const TaskGroups& groups) {
  if (groups.count_processes()) return groups.processes();
  std::vector<pid_t> found;
  for (const Process& process : processes()) found.push_back(process.pid);
  return found;
}

/// Processes that are forked meanwhile get the signal, too. Children come before their parents, since
/// a shell reports a child that it finds stopped.
void LimitWatch::signal_all(const TaskGroups& groups, int signal) {
  constexpr int kMostPasses = 10;
  if (root_ <= 1) return;  // in tests: that would be all processes of the machine
  std::set<pid_t> signalled;
  bool found = true;
  for (int passes = 0; found && passes < kMostPasses; ++passes) {
    found = false;
    std::vector<pid_t> all = current_processes(groups);
    std::sort(all.rbegin(), all.rend());
    for (const pid_t pid : all) {
      if (pid <= 1 || pid == ::getpid() || !signalled.insert(pid).second) continue;
      ::kill(pid, signal);
      found = true;
    }
  }
}

namespace {

/// Whether the process is gone, or a zombie.
bool has_given_back_memory(const fs::path& process) {
  const std::string stat = read_proc_file(process / "stat");
  const size_t bracket = stat.rfind(')');
  return bracket == std::string::npos || stat.compare(bracket, 3, ") Z") == 0 ||
         stat.compare(bracket, 3, ") X") == 0;
}

}  // namespace

/// Leaves the processes that the sandbox began with: if they end, the kernel kills all others at once.
void LimitWatch::end_in_parts(const TaskGroups& groups) {
  constexpr size_t kPart = 24;
  constexpr size_t kFirst = 4;
  constexpr int kMostLooks = 50;
  if (root_ <= 1) return;
  signal_all(groups, SIGSTOP);
  std::vector<pid_t> all = current_processes(groups);
  std::sort(all.begin(), all.end());
  while (all.size() > kFirst) {
    const size_t left = std::max(kFirst, all.size() - std::min(all.size(), kPart));
    for (size_t i = left; i < all.size(); ++i) ::kill(all[i], SIGKILL);
    for (int looks = 0; looks < kMostLooks && all.size() > left; ++looks) {
      while (all.size() > left && has_given_back_memory(proc_ / std::to_string(all.back())))
        all.pop_back();
      if (all.size() > left) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    all.resize(left);
  }
}

void LimitWatch::go_on(const TaskGroups& groups) {
  signal_all(groups, SIGCONT);
  is_stopped_ = false;
  ticks_ = ticks_of(current_processes(groups));
  refused_ = groups.refused_processes();
  killed_ = groups.killed_processes();
}

LimitWatch::Ticks LimitWatch::ticks_of(const std::vector<pid_t>& processes) const {
  Ticks sum;
  for (const pid_t pid : processes) {
    const auto stat = parse_stat(read_proc_file(proc_ / std::to_string(pid) / "stat"));
    if (!stat) continue;
    sum.system += stat->second.system_ticks;
    sum.user += stat->second.own_ticks - stat->second.system_ticks;
  }
  return sum;
}

std::optional<job::LimitReached> LimitWatch::processes_reached() const {
  if (limits_.user_processes == 0 || processes_peak_ < limits_.user_processes) return std::nullopt;
  return job::LimitReached{.limit = job::Limit::kProcesses,
                           .bound = limits_.processes,
                           .peak = std::min(processes_peak_, limits_.processes)};
}

std::optional<job::LimitReached> LimitWatch::look_at_scratch() {
  std::set<dev_t> disks;
  int64_t bytes = 0;
  for (const std::string& folder : limits_.scratch) bytes += size_of_folder(folder, disks);
  std::set<std::pair<dev_t, ino_t>> deleted;
  for (const Process& process : processes()) {
    bytes += size_of_deleted(proc_ / std::to_string(process.pid) / "fd", disks, deleted);
  }
  if (bytes <= limits_.scratch_bytes) return std::nullopt;
  return job::LimitReached{
      .limit = job::Limit::kScratch, .bound = limits_.scratch_bytes, .peak = bytes};
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
