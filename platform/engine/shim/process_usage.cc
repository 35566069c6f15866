#include "engine/shim/process_usage.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <system_error>

#include "base/number.h"
#include "base/unique_fd.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

// Smaller changes do not make up for walking the page tables.
constexpr uint64_t kNoticed = 64;  ///< one part of so many

/// A file of /proc, which has no size; empty where it is not there or nobody may read it. One call
/// of read(2) is all of a short one.
std::string read_short(const fs::path& path) {
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!file) return text;
  std::array<char, 4096> buffer;
  for (ssize_t count = 0; (count = ::read(file.get(), buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<size_t>(count));
  }
  return text;
}

std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\n"), text.size()));
  const size_t end = std::min(text.find_first_of(" \t\n"), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

uint64_t take_number(std::string_view& text) {
  return base::number_of<uint64_t>(take_word(text)).value_or(0);
}

std::vector<pid_t> numbered_entries(const fs::path& folder) {
  std::vector<pid_t> numbers;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error); entry != fs::directory_iterator();
       entry.increment(error)) {
    if (const auto number = base::number_of<pid_t>(entry->path().filename().string())) {
      numbers.push_back(*number);
    }
  }
  return numbers;
}

void append_children(const fs::path& thread, std::vector<pid_t>& children) {
  const std::string text = read_short(thread / "children");
  std::string_view rest = text;
  while (const auto child = base::number_of<pid_t>(take_word(rest))) children.push_back(*child);
}

/// Children are listed with the thread that forked them.
std::vector<pid_t> children_of(const fs::path& process, pid_t pid, uint64_t threads) {
  std::vector<pid_t> children;
  const fs::path tasks = process / "task";
  if (threads == 1) {
    append_children(tasks / std::to_string(pid), children);
  } else {
    for (const pid_t thread : numbered_entries(tasks)) {
      append_children(tasks / std::to_string(thread), children);
    }
  }
  return children;
}

/// Where a kernel keeps no lists of children, all processes are asked for their parents.
std::multimap<pid_t, pid_t> children_of_all(const fs::path& proc) {
  std::multimap<pid_t, pid_t> children;
  for (const pid_t pid : numbered_entries(proc)) {
    const auto read = parse_stat(read_short(proc / std::to_string(pid) / "stat"));
    if (read) children.emplace(read->second.parent, pid);
  }
  return children;
}

/// The value of "Pss:   123 kB"; nullopt where the kernel does not say it of this process.
std::optional<int64_t> proportional_bytes(const fs::path& process) {
  const std::string text = read_short(process / "smaps_rollup");
  const size_t at = text.find("\nPss:");
  if (at == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(text).substr(at + 5);
  return static_cast<int64_t>(take_number(rest)) << 10;
}

/// What is resident and not of a file: of processes that may not be looked into.
int64_t private_bytes(const fs::path& process) {
  const std::string text = read_short(process / "statm");
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

std::optional<std::pair<ProcessKey, ProcessState>> parse_stat(std::string_view text) {
  ProcessKey key;
  ProcessState state;
  std::string_view rest = text;
  key.pid = static_cast<pid_t>(take_number(rest));
  // The program's name may hold blanks and brackets: fields are counted from the last bracket.
  const size_t bracket = text.rfind(')');
  if (key.pid == 0 || bracket == std::string_view::npos) return std::nullopt;
  rest = text.substr(bracket + 1);
  const auto skip = [&rest](int fields) {
    for (int i = 0; i < fields; ++i) take_word(rest);
  };
  skip(1);  // the state
  state.parent = static_cast<pid_t>(take_number(rest));
  skip(9);
  state.own_ticks = take_number(rest);
  state.own_ticks += take_number(rest);
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

// What parents have reaped holds all that the dead had ever used; what was counted of them while
// they lived is taken off. Where a parent ignores its children nothing comes for the dead, and
// there is nothing to take off either.
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
  const fs::path root = proc_ / std::to_string(root_);
  std::error_code error;
  const bool listed = fs::exists(root / "task" / std::to_string(root_) / "children", error);
  const auto all = listed ? std::multimap<pid_t, pid_t>() : children_of_all(proc_);
  Processes found;
  // The root itself is the shim: it copies what the task prints, at the task's bidding.
  std::vector<std::pair<pid_t, uint64_t>> open{{root_, 1}};
  while (!open.empty()) {
    const auto [parent, threads] = open.back();
    open.pop_back();
    std::vector<pid_t> children;
    if (listed) {
      children = children_of(proc_ / std::to_string(parent), parent, threads);
    } else {
      const auto [first, end] = all.equal_range(parent);
      for (auto at = first; at != end; ++at) children.push_back(at->second);
    }
    for (const pid_t child : children) {
      if (child == left_out_) continue;
      const auto read = parse_stat(read_short(proc_ / std::to_string(child) / "stat"));
      // A process that has moved in the tree meanwhile is found twice.
      if (read && found.insert(*read).second) open.emplace_back(child, read->second.threads);
    }
  }
  return found;
}

int64_t ProcessUsage::memory_of(const Processes& processes) {
  const bool same = same_processes(processes, memory_);
  std::map<ProcessKey, Memory> memory;
  int64_t sum = 0;
  for (const auto& [key, state] : processes) {
    const auto known = memory_.find(key);
    const bool is_stale = !same || known == memory_.end() ||
                          distance(known->second.resident_pages, state.resident_pages) * kNoticed >
                              known->second.resident_pages;
    Memory& now = memory[key];
    if (is_stale) {
      const fs::path process = proc_ / std::to_string(key.pid);
      const auto bytes = proportional_bytes(process);
      now = {.resident_pages = state.resident_pages,
             .bytes = bytes ? *bytes : private_bytes(process)};
    } else {
      now = known->second;
    }
    sum += now.bytes;
  }
  memory_ = std::move(memory);
  return sum;
}

ProcessUsage::Usage ProcessUsage::look() {
  static const auto kTick =
      std::chrono::nanoseconds(std::chrono::seconds(1)) / ::sysconf(_SC_CLK_TCK);
  Processes now = tree();
  Usage usage{.cpu = kTick * ticks_between(last_, now), .memory_bytes = memory_of(now)};
  for (const auto& [key, state] : now) usage.processes.push_back(key.pid);
  last_ = std::move(now);
  return usage;
}

}  // namespace muster::engine
