#include "engine/shim/process_usage.h"

#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/units.h"
#include "engine/shim/process_tree.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

/// A change of less than one part in 64 is not worth a walk of the page tables.
constexpr uint64_t kNoticed = 64;

/// The value of "Pss:   123 kB"; nullopt: the kernel does not report it for this process.
std::optional<int64_t> proportional_bytes(const fs::path& process) {
  const std::string text = read_proc_file(process / "smaps_rollup");
  const size_t at = text.find("\nPss:");
  if (at == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(text).substr(at + 5);
  return static_cast<int64_t>(take_number(rest)) << 10;
}

/// Resident memory that is not of a file. Used for processes whose page tables this account may not
/// read.
int64_t private_bytes(const fs::path& process) {
  const std::string text = read_proc_file(process / "statm");
  std::string_view rest = text;
  take_word(rest);
  const uint64_t resident = take_number(rest);
  const uint64_t shared = take_number(rest);
  return static_cast<int64_t>(resident - std::min(resident, shared)) * ::sysconf(_SC_PAGESIZE);
}

bool same_processes(const Processes& now, const auto& before) {
  return now.size() == before.size() &&
         std::equal(now.begin(), now.end(), before.begin(),
                    [](const auto& a, const auto& b) { return a.first == b.first; });
}

uint64_t distance(uint64_t a, uint64_t b) {
  return a > b ? a - b : b - a;
}

}  // namespace

int64_t proportional_memory(const fs::path& proc, pid_t pid) {
  const fs::path process = proc / std::to_string(pid);
  const auto bytes = proportional_bytes(process);
  return bytes ? *bytes : private_bytes(process);
}

std::optional<std::pair<ProcessKey, ProcessState>> parse_stat(std::string_view text) {
  ProcessKey key;
  ProcessState state;
  std::string_view rest = text;
  key.pid = static_cast<pid_t>(take_number(rest));
  // The name of the program may contain blanks and brackets, so fields count from the last bracket.
  const size_t bracket = text.rfind(')');
  if (key.pid == 0 || bracket == std::string_view::npos) return std::nullopt;
  rest = text.substr(bracket + 1);
  const auto skip = [&rest](int fields) {
    for (int i = 0; i < fields; ++i) take_word(rest);
  };
  skip(1);  // the state
  state.parent = static_cast<pid_t>(take_number(rest));
  skip(2);
  state.terminal = take_number(rest);
  skip(6);
  state.own_ticks = take_number(rest);
  state.system_ticks = take_number(rest);
  state.own_ticks += state.system_ticks;
  state.reaped_ticks = take_number(rest);
  state.reaped_ticks += take_number(rest);
  skip(2);
  state.threads = take_number(rest);
  skip(1);
  key.start_ticks = take_number(rest);
  skip(1);
  const auto resident = base::number_of<uint64_t>(take_word(rest));
  if (!resident) return std::nullopt;
  state.resident_pages = *resident;
  return std::pair(key, state);
}

// The counter of reaped children contains the whole CPU time of an ended process, including time
// that was counted while the process lived. That time is subtracted. If a parent ignores SIGCHLD,
// its counter does not grow, and nothing is subtracted.
uint64_t ticks_between(const Processes& before, const Processes& now) {
  uint64_t own = 0;
  uint64_t reaped = 0;
  for (const auto& [key, state] : now) {
    const auto found = before.find(key);
    const ProcessState old = found == before.end() ? ProcessState{} : found->second;
    own += state.own_ticks - std::min(state.own_ticks, old.own_ticks);
    reaped += state.reaped_ticks - std::min(state.reaped_ticks, old.reaped_ticks);
  }
  uint64_t counted = 0;
  for (const auto& [key, state] : before) {
    if (now.count(key) == 0) counted += state.own_ticks + state.reaped_ticks;
  }
  return own + reaped - std::min(reaped, counted);
}

ProcessUsage::ProcessUsage(pid_t root, pid_t left_out, fs::path proc)
    : root_(root), left_out_(left_out), proc_(std::move(proc)) {}

Processes ProcessUsage::tree() const {
  const ProcessChildren children(proc_, root_);
  Processes found;
  // The root is the shim. It is not part of the task and is not measured.
  std::vector<std::pair<pid_t, uint64_t>> open{{root_, 1}};
  while (!open.empty()) {
    const auto [parent, threads] = open.back();
    open.pop_back();
    for (const pid_t child : children.of(parent, threads)) {
      if (child == left_out_) continue;
      const auto read = parse_stat(read_proc_file(proc_ / std::to_string(child) / "stat"));
      // A process whose parent changes meanwhile is found twice.
      if (read && found.insert(*read).second) open.emplace_back(child, read->second.threads);
    }
  }
  return found;
}

// A process whose memory is not read in the end stays unknown, and so all are read at the next look.
std::vector<pid_t> ProcessUsage::forget_stale_memory() {
  const bool same = same_processes(last_, memory_);
  std::vector<pid_t> unmeasured;
  std::map<ProcessKey, Memory> kept;
  for (const auto& [key, state] : last_) {
    const auto known = memory_.find(key);
    const bool is_stale = !same || known == memory_.end() ||
                          distance(known->second.resident_pages, state.resident_pages) * kNoticed >
                              known->second.resident_pages;
    if (is_stale) {
      unmeasured.push_back(key.pid);
    } else {
      kept.insert(*known);
    }
  }
  memory_ = std::move(kept);
  return unmeasured;
}

ProcessUsage::Look ProcessUsage::look_at_processes() {
  static const auto kTick =
      std::chrono::nanoseconds(std::chrono::seconds(1)) / ::sysconf(_SC_CLK_TCK);
  Processes now = tree();
  Look look{.cpu = kTick * ticks_between(last_, now), .processes = {}, .unmeasured = {}};
  for (const auto& [key, state] : now) look.processes.push_back(key.pid);
  last_ = std::move(now);
  look.unmeasured = forget_stale_memory();
  return look;
}

void ProcessUsage::measured(const std::map<pid_t, int64_t>& bytes) {
  for (const auto& [key, state] : last_) {
    const auto read = bytes.find(key.pid);
    if (read == bytes.end()) continue;
    memory_[key] = {.resident_pages = state.resident_pages, .bytes = read->second};
  }
}

int64_t ProcessUsage::memory_bytes() const {
  int64_t sum = 0;
  for (const auto& [key, memory] : memory_) sum += memory.bytes;
  return sum;
}

ProcessUsage::Usage ProcessUsage::look() {
  Look look = look_at_processes();
  std::map<pid_t, int64_t> bytes;
  for (const pid_t pid : look.unmeasured) bytes[pid] = proportional_memory(proc_, pid);
  measured(bytes);
  return {.cpu = look.cpu, .memory_bytes = memory_bytes(), .processes = std::move(look.processes)};
}

}  // namespace muster::engine
