#include "engine/shim/rank_watch.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <set>
#include <string>

#include "base/units.h"
#include "engine/shim/proc_files.h"
#include "engine/shim/process_usage.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

// hydra_pmi_proxy and hydra_bstrap_proxy, cut as the kernel cuts the names of processes.
constexpr std::array<std::string_view, 2> kProxies{"hydra_pmi_proxy", "hydra_bstrap_pr"};

/// Of a start's age: a rank that lives a tenth as long as its world took to come up is seen.
constexpr int kPartOfAge = 10;
constexpr std::chrono::milliseconds kShortestRest{5};
constexpr std::chrono::milliseconds kLongestRest{2000};

std::optional<int> number_behind(std::string_view entry, std::string_view name) {
  if (!entry.starts_with(name)) return std::nullopt;
  return base::number_of<int>(entry.substr(name.size()));
}

/// A question waits so long for its answer before it is taken for one that nobody answers.
constexpr std::chrono::seconds kHangsFor{5};
/// The frame by which UCX asks over TCP whether all that was sent has arrived.
constexpr uint64_t kQuestionBytes = 25;

uint64_t hexadecimal(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, 16);
  return number;
}

/// Where the process manager is, for the rank of this environment.
std::optional<int> pmi_descriptor_in(std::string_view environment) {
  while (!environment.empty()) {
    const size_t end = std::min(environment.find('\0'), environment.size());
    if (const auto number = number_behind(environment.substr(0, end), "PMI_FD=")) return number;
    environment.remove_prefix(std::min(end + 1, environment.size()));
  }
  return std::nullopt;
}

/// "0 0x6 0x7f..." of proc(5): the number of the call, and its arguments.
bool reads_from(const fs::path& process, int descriptor) {
  const std::string text = read_proc_file(process / "syscall");
  std::string_view rest = text;
  return take_word(rest) == std::to_string(SYS_read) &&
         hexadecimal(take_word(rest)) == static_cast<uint64_t>(descriptor);
}

/// "socket:[4711]" of each descriptor.
std::set<std::string> sockets_of(const fs::path& process) {
  std::set<std::string> sockets;
  for (const pid_t descriptor : numbered_entries(process / "fd")) {
    std::error_code error;
    const fs::path target = fs::read_symlink(process / "fd" / std::to_string(descriptor), error);
    if (!error && target.native().starts_with("socket:[")) sockets.insert(target.native());
  }
  return sockets;
}

/// Whether a connection of the process holds a question that it has not read. The columns of
/// net/tcp: slot, two addresses, state, sent:received, timer, retransmissions, user, timeout,
/// inode.
bool leaves_a_question(const fs::path& process) {
  const std::set<std::string> sockets = sockets_of(process);
  const std::string table = read_proc_file(process / "net" / "tcp");
  std::string_view rest = table;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    std::array<std::string_view, 10> columns;
    for (std::string_view& column : columns) column = take_word(line);
    const size_t colon = columns[4].find(':');
    if (colon == std::string_view::npos) continue;
    if (hexadecimal(columns[4].substr(colon + 1)) < kQuestionBytes) continue;
    if (sockets.contains("socket:[" + std::string(columns[9]) + "]")) return true;
  }
  return false;
}

/// Calls `found` for each process that a proxy below `root` has started as a rank.
void each_rank_below(
    pid_t root, const fs::path& proc,
    const std::function<void(pid_t, const SignedRank&, const std::string& environment)>& found) {
  struct Process {
    pid_t pid;
    uint64_t threads;
    bool is_proxy;
  };
  const ProcessChildren children(proc, root);
  std::vector<Process> open{{root, 1, false}};
  while (!open.empty()) {
    const Process parent = open.back();
    open.pop_back();
    for (const pid_t pid : children.of(parent.pid, parent.threads)) {
      const fs::path process = proc / std::to_string(pid);
      const std::string stat = read_proc_file(process / "stat");
      const auto state = parse_stat(stat);
      if (!state) continue;
      const std::string_view name = name_in_stat(stat);
      const bool is_proxy = std::find(kProxies.begin(), kProxies.end(), name) != kProxies.end();
      open.push_back({pid, state->second.threads, is_proxy});
      if (!parent.is_proxy || is_proxy) continue;
      const std::string environment = read_proc_file(process / "environ");
      if (const auto rank = rank_of_environment(environment)) found(pid, *rank, environment);
    }
  }
}

bool hangs(const fs::path& process, const std::string& environment) {
  const auto descriptor = pmi_descriptor_in(environment);
  return descriptor && reads_from(process, *descriptor) && leaves_a_question(process);
}

}  // namespace

std::optional<SignedRank> rank_of_environment(std::string_view environment) {
  std::optional<int> rank;
  std::optional<int> size;
  while (!environment.empty()) {
    const size_t end = std::min(environment.find('\0'), environment.size());
    const std::string_view entry = environment.substr(0, end);
    environment.remove_prefix(std::min(end + 1, environment.size()));
    if (const auto number = number_behind(entry, "PMI_RANK=")) rank = number;
    if (const auto number = number_behind(entry, "PMI_SIZE=")) size = number;
  }
  if (!rank || !size || *rank < 0 || *size <= *rank) return std::nullopt;
  return SignedRank{.rank = *rank, .world_size = *size};
}

std::vector<SignedRank> ranks_below(pid_t root, const fs::path& proc) {
  std::vector<SignedRank> ranks;
  each_rank_below(root, proc, [&](pid_t, const SignedRank& rank, const std::string&) {
    ranks.push_back(rank);
  });
  return ranks;
}

std::vector<pid_t> hanging_below(pid_t root, const fs::path& proc) {
  std::vector<pid_t> hanging;
  each_rank_below(root, proc, [&](pid_t pid, const SignedRank&, const std::string& environment) {
    if (hangs(proc / std::to_string(pid), environment)) hanging.push_back(pid);
  });
  return hanging;
}

std::chrono::nanoseconds pause_after(std::chrono::nanoseconds age, std::chrono::nanoseconds cost) {
  const auto pause =
      std::clamp<std::chrono::nanoseconds>(age / kPartOfAge, kShortestRest, kLongestRest);
  return std::max(pause, kRestForWork * cost);
}

void RankWatch::started(Steady::time_point now) {
  started_ = now;
  due_ = now + kShortestRest;
}

void RankWatch::look() {
  if (!started_) return;
  const Steady::time_point begin = Steady::now();
  const auto enter = [&](const SignedRank& rank) {
    const auto known = signed_in_.find(rank.rank);
    if (known != signed_in_.end() && known->second == rank.world_size) return;
    if (sign_in(folder_, rank)) signed_in_[rank.rank] = rank.world_size;
  };
  std::map<pid_t, Steady::time_point> hanging;
  each_rank_below(::getpid(), "/proc",
                  [&](pid_t pid, const SignedRank& rank, const std::string& environment) {
                    enter(rank);
                    if (!hangs(fs::path("/proc") / std::to_string(pid), environment)) return;
                    const auto since = hanging_.find(pid);
                    hanging[pid] = since == hanging_.end() ? begin : since->second;
                    if (begin - hanging[pid] >= kHangsFor)
                      enter({.rank = kHangs, .world_size = rank.world_size});
                  });
  hanging_ = std::move(hanging);
  const Steady::time_point end = Steady::now();
  due_ = end + pause_after(end - *started_, end - begin);
}

}  // namespace muster::engine
