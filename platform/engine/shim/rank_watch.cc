#include "engine/shim/rank_watch.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/number.h"
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
  struct Process {
    pid_t pid;
    uint64_t threads;
    bool is_proxy;
  };
  const ProcessChildren children(proc, root);
  std::vector<SignedRank> ranks;
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
      if (const auto rank = rank_of_environment(read_proc_file(process / "environ"))) {
        ranks.push_back(*rank);
      }
    }
  }
  return ranks;
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
  for (const SignedRank& rank : ranks_below(::getpid())) {
    const auto known = signed_in_.find(rank.rank);
    if (known != signed_in_.end() && known->second == rank.world_size) continue;
    if (sign_in(folder_, rank)) signed_in_[rank.rank] = rank.world_size;
  }
  const Steady::time_point end = Steady::now();
  due_ = end + pause_after(end - *started_, end - begin);
}

}  // namespace muster::engine
