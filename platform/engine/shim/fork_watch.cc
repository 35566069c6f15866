#include "engine/shim/fork_watch.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/units.h"
#include "engine/shim/process_tree.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

// Between two looks. A program that waits before it tries again is refused some times a second, a
// fork bomb some hundred times for each CPU.
constexpr int64_t kMostRefusals = 25;
// A program that replaces a killed process fills its memory first.
constexpr int64_t kMostKills = 5;
constexpr int kMostStrikes = 3;
// Of the processes that a task may have, some are just in the making, which takes long in a bomb: 110
// of 1024 on a machine under load.
constexpr int64_t kPartInTheMaking = 4;
constexpr int kPausesOfStrike = 4;
// While a task is examined: most processes stop at once, but each needs a CPU for a moment.
constexpr int kExaminationsInPause = 12;
constexpr size_t kMostExamined = 256;

/// At most `most` of them, evenly spread.
std::vector<pid_t> spread(const std::vector<pid_t>& all, size_t most) {
  if (all.size() <= most) return all;
  std::vector<pid_t> chosen;
  for (size_t i = 0; i < most; ++i) chosen.push_back(all[i * all.size() / most]);
  return chosen;
}

/// `text`: a stopped thread's file syscall, "57 0x0 0x7ffd..." or "-1 0x7ffd...".
std::optional<int> call_in(std::string_view text) {
  return base::number_of<int>(take_word(text));
}

bool is_fork(std::optional<int> call) {
#ifdef SYS_fork
  if (call == SYS_fork || call == SYS_vfork) return true;
#endif
  return call == SYS_clone || call == SYS_clone3;
}

/// The system calls of pthread_create() besides clone3(): it takes a lock, gets memory for a stack,
/// which it returns when it is refused, and blocks signals meanwhile.
bool is_beside_new_thread(std::optional<int> call) {
  static constexpr std::array kCalls = {SYS_futex,    SYS_mmap,    SYS_munmap,
                                        SYS_mprotect, SYS_madvise, SYS_rt_sigprocmask};
  return call && std::find(kCalls.begin(), kCalls.end(), *call) != kCalls.end();
}

/// In a fork bomb of processes, most processes are leaving a fork. In a fork bomb of threads,
/// threads also wait for one another.
bool is_fork_bomb(const ThreadStates& states) {
  const int others = states.stopped - states.beside;
  if (states.stopped == 0) return false;
  return 2 * states.forking >= states.stopped ||
         (5 * states.forking >= states.stopped && 3 * states.forking >= 2 * others);
}

/// Whether the thread has run since it was forked. A child that waits for its first turn on a CPU
/// leaves clone() as well, when it is stopped; with many short commands that is so for most of them.
/// `folder`: of the thread.
bool has_run(const fs::path& folder) {
  constexpr uint64_t kNanoseconds = 300'000;
  const std::string times = read_proc_file(folder / "schedstat");
  std::string_view rest = times;
  return take_number(rest) >= kNanoseconds;
}

/// Whether the process is gone, or a zombie.
bool has_given_back_memory(const fs::path& process) {
  const char state = state_in(read_proc_file(process / "stat"));
  return state == '\0' || state == 'Z' || state == 'X';
}

}  // namespace

ThreadStates thread_states_of(const fs::path& proc, const std::vector<pid_t>& processes) {
  ThreadStates states;
  const std::vector<pid_t> chosen = spread(processes, kMostExamined);
  const size_t of_each = std::max<size_t>(kMostExamined / std::max<size_t>(chosen.size(), 1), 1);
  for (const pid_t process : chosen) {
    const fs::path threads = proc / std::to_string(process) / "task";
    const std::vector<pid_t> all = numbered_entries(threads);
    for (const pid_t thread : spread(all, of_each)) {
      const fs::path folder = threads / std::to_string(thread);
      const char state = state_in(read_proc_file(folder / "stat"));
      if (state == '\0' || state == 'Z' || state == 'X') continue;
      ++states.alive;
      if (state == 'R' || state == 'D') ++states.runnable;
      if (state != 'T' && state != 't') continue;
      ++states.stopped;
      const auto call = call_in(read_proc_file(folder / "syscall"));
      if (is_fork(call) && has_run(folder)) ++states.forking;
      if (all.size() > 1 && is_beside_new_thread(call)) ++states.beside;
    }
  }
  return states;
}

ForkWatch::ForkWatch(TaskLimits limits, std::chrono::milliseconds pause)
    : limits_(std::move(limits)), groups_(limits_.groups), pause_(pause) {}

bool ForkWatch::is_needed() const {
  return limits_.user_processes > 0 || (limits_.processes > 0 && limits_.has_group("pids")) ||
         (limits_.memory_bytes > 0 && limits_.has_group("memory"));
}

std::chrono::milliseconds ForkWatch::pause() const {
  switch (state_) {
    case State::kExamining:
      return pause_ / kExaminationsInPause;
    case State::kPausing:
      return kPausesOfStrike * pause_;
    case State::kWatching:
      break;
  }
  return pause_;
}

std::optional<job::LimitReached> ForkWatch::look(TaskProcesses& processes, int64_t has) {
  switch (state_) {
    case State::kExamining:
      return examine(processes);
    case State::kPausing:
      go_on(processes);
      return std::nullopt;
    case State::kWatching:
      break;
  }
  return watch(processes, has);
}

std::optional<job::LimitReached> ForkWatch::watch(TaskProcesses& processes, int64_t has) {
  const int64_t refused = groups_.refused_processes();
  const int64_t killed = groups_.killed_processes();
  const bool is_refused = refused - std::exchange(refused_, refused) > kMostRefusals;
  const bool is_filled_again = killed - std::exchange(killed_, killed) > kMostKills;
  const bool has_all = has_nearly_all(has);
  if (is_refused) return strike(processes, job::Limit::kProcesses);
  if (is_filled_again) return strike(processes, job::Limit::kMemory);
  // After a strike, the task is not trusted.
  const bool is_trusted = strikes_ == 0 && Steady::now() < trusted_until_;
  if (has_all && !is_trusted) {
    const ThreadStates states = thread_states_of(processes.proc(), current_processes(processes));
    if (4 * states.runnable >= states.alive && states.alive > 0) {
      signal_all(processes, SIGSTOP);
      state_ = State::kExamining;
      examinations_ = 0;
      return std::nullopt;
    }
  }
  strikes_ = 0;
  return std::nullopt;
}

std::optional<job::LimitReached> ForkWatch::examine(TaskProcesses& processes) {
  const ThreadStates states = thread_states_of(processes.proc(), current_processes(processes));
  // Threads that are stopped late are like the others.
  const bool is_enough = 2 * states.stopped >= states.alive;
  if (!is_enough && ++examinations_ < kExaminationsInPause) return std::nullopt;
  if (is_fork_bomb(states)) return strike(processes, job::Limit::kProcesses);
  strikes_ = 0;
  trust_for_a_while();
  go_on(processes);
  return std::nullopt;
}

std::optional<job::LimitReached> ForkWatch::strike(TaskProcesses& processes, job::Limit limit) {
  if (++strikes_ < kMostStrikes) {
    if (state_ != State::kExamining) signal_all(processes, SIGSTOP);
    state_ = State::kPausing;
    return std::nullopt;
  }
  end_in_parts(processes);
  if (limit == job::Limit::kMemory) return groups_.reached(limits_);
  const int64_t peak = peak_ > 0 ? peak_ : limits_.processes;
  return job::LimitReached{
      .limit = limit, .bound = limits_.processes, .peak = std::min(peak, limits_.processes)};
}

/// Of the processes that RLIMIT_NPROC allows.
bool ForkWatch::has_nearly_all(int64_t has) {
  if (limits_.user_processes == 0) return false;
  // Of Muster's own processes, which the limit does not count, at least one is in the group.
  const auto count = groups_.count_processes();
  const int64_t own = count ? *count - 1 : has;
  peak_ = std::max(peak_, own);
  return own >= limits_.user_processes - limits_.user_processes / kPartInTheMaking;
}

void ForkWatch::trust_for_a_while() {
  trust_ = std::min<std::chrono::milliseconds>(std::max(2 * trust_, 2 * pause_), kLongestTrust);
  trusted_until_ = Steady::now() + trust_;
}

std::vector<pid_t> ForkWatch::current_processes(TaskProcesses& processes) const {
  if (groups_.count_processes()) return groups_.processes();
  std::vector<pid_t> found;
  for (const TaskProcesses::Process& process : processes.find()) found.push_back(process.pid);
  return found;
}

/// Processes that are forked meanwhile get the signal, too. Children come before their parents, since
/// a shell reports a child that it finds stopped.
void ForkWatch::signal_all(TaskProcesses& processes, int signal) const {
  constexpr int kMostPasses = 10;
  if (processes.root() <= 1) return;  // in tests: that would be all processes of the machine
  std::set<pid_t> signalled;
  bool found = true;
  for (int passes = 0; found && passes < kMostPasses; ++passes) {
    found = false;
    std::vector<pid_t> all = current_processes(processes);
    std::sort(all.begin(), all.end(), std::greater<>());
    for (const pid_t pid : all) {
      if (pid <= 1 || pid == ::getpid() || !signalled.insert(pid).second) continue;
      ::kill(pid, signal);
      found = true;
    }
  }
}

/// Leaves the processes that the sandbox began with: if they end, the kernel kills all others at once.
void ForkWatch::end_in_parts(TaskProcesses& processes) const {
  constexpr size_t kPart = 24;
  constexpr size_t kFirst = 4;
  constexpr int kMostLooks = 50;
  if (processes.root() <= 1) return;
  signal_all(processes, SIGSTOP);
  std::vector<pid_t> all = current_processes(processes);
  std::sort(all.begin(), all.end());
  while (all.size() > kFirst) {
    const size_t left = std::max(kFirst, all.size() - std::min(all.size(), kPart));
    for (size_t i = left; i < all.size(); ++i) ::kill(all[i], SIGKILL);
    for (int looks = 0; looks < kMostLooks && all.size() > left; ++looks) {
      while (all.size() > left &&
             has_given_back_memory(processes.proc() / std::to_string(all.back()))) {
        all.pop_back();
      }
      if (all.size() > left) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    all.resize(left);
  }
}

void ForkWatch::go_on(TaskProcesses& processes) {
  signal_all(processes, SIGCONT);
  state_ = State::kWatching;
  refused_ = groups_.refused_processes();
  killed_ = groups_.killed_processes();
}

}  // namespace muster::engine
