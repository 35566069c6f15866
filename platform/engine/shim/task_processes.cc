#include "engine/shim/task_processes.h"

#include <algorithm>
#include <utility>

#include "engine/shim/process_tree.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

constexpr int kLooksUntilForgotten = 50;

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

}  // namespace muster::engine
