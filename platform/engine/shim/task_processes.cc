#include "engine/shim/task_processes.h"

#include <algorithm>
#include <utility>

#include "engine/shim/process_tree.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

/// All processes of the machine are looked at again after so many looks: the kernel gives their numbers
/// away later.
constexpr int kLooksUntilForgotten = 300;
/// A process has its number before /proc has the process, so a number is looked at several times.
constexpr size_t kLooksAtNumber = 20;
/// With more new numbers than this, a list of the processes is read sooner.
constexpr pid_t kMostNumbers = 10'000;

/// "pid:[4026531836]"; empty: this process may not see it.
fs::path pid_namespace_of(const fs::path& process) {
  std::error_code error;
  return fs::read_symlink(process / "ns/pid", error);
}

}  // namespace

uint64_t threads_in(std::string_view status) {
  const size_t at = status.find("Threads:");
  if (at == std::string_view::npos) return 1;
  std::string_view count = status.substr(at + 8);
  return std::max<uint64_t>(take_number(count), 1);
}

char state_in(std::string_view stat) {
  // The name before it can contain anything.
  const size_t bracket = stat.rfind(')');
  return bracket == std::string_view::npos || bracket + 2 >= stat.size() ? '\0' : stat[bracket + 2];
}

TaskProcesses::TaskProcesses(pid_t root, fs::path proc) : root_(root), proc_(std::move(proc)) {}

std::vector<TaskProcesses::Process> TaskProcesses::find() {
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
  add_programs_of_exec(all);
  return all;
}

namespace {

/// 0: unknown. The last word of "0.20 0.18 0.12 1/80 11206".
pid_t newest_process(const fs::path& proc) {
  const std::string text = read_proc_file(proc / "loadavg");
  std::string_view rest = text;
  for (int i = 0; i < 4; ++i) take_word(rest);
  return static_cast<pid_t>(take_number(rest));
}

/// /proc/TID exists for each thread, too.
bool is_whole_process(std::string_view status, pid_t pid) {
  const size_t at = status.find("\nTgid:");
  if (at == std::string_view::npos) return true;
  std::string_view number = status.substr(at + 6);
  return take_number(number) == static_cast<uint64_t>(pid);
}

}  // namespace

std::vector<pid_t> TaskProcesses::perhaps_new_processes() {
  const pid_t newest = newest_process(proc_);
  const bool forgets = looks_beside_++ % kLooksUntilForgotten == 0;
  // After the largest number, the kernel begins with small ones again.
  const bool began_again = !last_pids_.empty() && newest < last_pids_.back();
  if (forgets || began_again || newest == 0 || newest - last_pids_.front() > kMostNumbers) {
    if (forgets || began_again) strangers_.clear();
    last_pids_.assign(1, newest);
    return numbered_entries(proc_);
  }
  std::vector<pid_t> numbers(beside_.begin(), beside_.end());
  for (pid_t pid = last_pids_.front() + 1; pid <= newest; ++pid) {
    if (!beside_.contains(pid)) numbers.push_back(pid);
  }
  last_pids_.push_back(newest);
  if (last_pids_.size() > kLooksAtNumber) last_pids_.pop_front();
  strangers_.erase(strangers_.begin(), strangers_.upper_bound(last_pids_.front()));
  return numbers;
}

void TaskProcesses::add_programs_of_exec(std::vector<Process>& all) {
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
  std::set<pid_t> beside;
  for (const pid_t pid : perhaps_new_processes()) {
    if (known.contains(pid) || strangers_.contains(pid)) continue;
    const fs::path folder = proc_ / std::to_string(pid);
    const fs::path its_namespace = pid_namespace_of(folder);
    if (its_namespace == sandbox) {
      std::string status = read_proc_file(folder / "status");
      if (!is_whole_process(status, pid)) continue;
      beside.insert(pid);
      all.push_back({pid, std::move(status)});
    } else if (!its_namespace.empty()) {
      strangers_.insert(pid);
    }
  }
  beside_ = std::move(beside);
}

}  // namespace muster::engine
