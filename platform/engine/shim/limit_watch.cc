#include "engine/shim/limit_watch.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "engine/shim/poll_wait.h"
#include "engine/shim/proc_files.h"
#include "engine/shim/process_usage.h"

namespace muster::engine {

namespace fs = std::filesystem;

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

}  // namespace muster::engine
