#include <algorithm>
#include <bit>
#include <fstream>
#include <limits>
#include <thread>
#include <utility>

#include "control/monitor_impl.h"

namespace muster::collective {
namespace {

using std::chrono::milliseconds;

// Ticks for which a rank probes on behalf of other ranks after their last probe. Longer than it
// takes to probe all neighbours in turn.
constexpr int kTicksForOthers = 10;

// At the timeout of a call: the pause between the ranks that begin to ask all others, and the ranks
// to which they connect at a time.
constexpr milliseconds kBetweenAskers{50};
constexpr int kCalledAtOnce = 16;

// A rank answers when it gets a processor. On a host with more runnable threads than processors, each
// of them may be given a turn before.
milliseconds crowding_of_this_host() {
  constexpr milliseconds kTurn{20};
  std::ifstream file("/proc/loadavg");
  for (int average = 0; average < 3; ++average) {
    file.ignore(std::numeric_limits<std::streamsize>::max(), ' ');
  }
  int runnable = 0;
  if (!(file >> runnable)) return {};
  return std::max(0, runnable - static_cast<int>(std::thread::hardware_concurrency())) * kTurn;
}

}  // namespace

void Monitor::Impl::pass_time() {
  const Lock lock(mutex_);
  if (failure_) return;
  if (repair_at_ && Clock::now() >= *repair_at_) repair();
  resolve_suspects();
  if (reach_for_others_ > 0 && Clock::now() >= probes_for_others_until_) {
    reach_for_others_ = 0;
    if (!patrols()) detector_.end();
  }
  if (!patrols()) return;
  const auto passed = std::chrono::floor<milliseconds>(Clock::now() - last_tick_);
  if (passed >= tick_) {
    last_tick_ = Clock::now();
    ask(detector_.tick(passed, tick_));
    // If more than a tick has passed, this process itself was paused: the rest is not counted.
    for (auto& [id, watching] : watches_) watching.waited += std::min(passed, tick_);
    if (!is_complete()) ask_all_ranks_for_calls();
  }
  judge(longest_watch());
}

// The watch that has waited longest, or null without any. Of several, the one that began first.
const Monitor::Impl::Watching* Monitor::Impl::longest_watch() const {
  const Watching* longest = nullptr;
  for (const auto& [id, watching] : watches_) {
    if (longest == nullptr || watching.waited > longest->waited) longest = &watching;
  }
  return longest;
}

std::optional<Error> Monitor::Impl::silent(const std::string& what) const {
  if (!detector_.silent(what)) return std::nullopt;
  return detector_.silent(what, crowding_of_this_host());
}

void Monitor::Impl::judge(const Watching* watching) {
  if (watching == nullptr) {
    if (std::optional<Error> error = silent("a call of another rank")) {
      fail_locked(*std::move(error));
    }
    return;
  }
  const std::uint64_t entered = monitor_.entered_.load(std::memory_order_relaxed);
  std::optional<Error> error = detector_.missing(entered, watching->what);
  if (!error) error = silent(watching->what);
  if (!error && (is_complete() || asks_all_)) {
    error = detector_.late(entered, watching->waited, watching->what);
  }
  if (error) fail_locked(*std::move(error));
}

Bytes Monitor::Impl::sign_of_life(FrameKind kind) const {
  const auto further = static_cast<std::uint8_t>(kind == FrameKind::kProbe ? reach() : 0);
  return encode(Frame{.kind = kind,
                      .entered = monitor_.entered_.load(std::memory_order_relaxed),
                      .reach = further});
}

void Monitor::Impl::ask(const std::vector<int>& ranks) {
  for (const int rank : ranks) {
    const std::size_t index = lines_.to(rank);
    if (index == lines_.size()) continue;
    ++lines_[index].probes;
    send_to_line(index, sign_of_life(FrameKind::kProbe));
  }
}

// The reach of a probe that is sent now. The graph has no two ranks that are further apart.
int Monitor::Impl::reach() const {
  if (is_complete()) return 0;
  if (watches_.empty()) return std::max(0, reach_for_others_ - 1);
  return static_cast<int>(std::bit_width(static_cast<unsigned>(switchboard_->size())));
}

void Monitor::Impl::begin_patrol() {
  last_tick_ = Clock::now();
  ask(detector_.begin());
}

// A lower reach does not prolong a higher one. So two neighbours that probe only because the other
// one does stop after a while.
void Monitor::Impl::probe_for_others(int reach) {
  if (reach == 0 || reach < reach_for_others_ || failure_) return;
  const bool begins = !patrols();
  reach_for_others_ = reach;
  probes_for_others_until_ = Clock::now() + kTicksForOthers * tick_;
  if (begins) {
    begin_patrol();
    raise(wake_event_);
  }
}

std::uint64_t Monitor::Impl::watch(std::string what) {
  const Lock lock(mutex_);
  const std::uint64_t id = ++last_id_;
  const bool begins = !patrols() && !failure_;
  watches_.emplace(id, Watching{std::move(what)});
  if (begins) begin_patrol();
  raise(wake_event_);
  return id;
}

void Monitor::Impl::renew(std::uint64_t id) {
  const Lock lock(mutex_);
  if (const auto found = watches_.find(id); found != watches_.end()) {
    found->second.waited = milliseconds{0};
  }
}

void Monitor::Impl::unwatch(std::uint64_t id) {
  const Lock lock(mutex_);
  watches_.erase(id);
  if (!watches_.empty()) return;
  asks_all_ = false;
  if (!patrols()) detector_.end();
}

// At the timeout: connects to all ranks and asks each for its calls.
void Monitor::Impl::ask_all_ranks_for_calls() {
  const Watching* const longest = longest_watch();
  if (longest == nullptr) return;
  const int size = switchboard_->size();
  const milliseconds pause = std::min(options_.timeout, size * kBetweenAskers);
  if (longest->waited < options_.timeout + pause * options_.rank / size) {
    asks_all_ = false;  // if it has asked for another watch, the answers are out of date
    return;
  }
  if (!std::exchange(asks_all_, true)) detector_.ask_anew();
  ask(detector_.ask_for_answers());
  int called = 0;
  for (int steps = 0; steps < size && called < kCalledAtOnce; ++steps) {
    next_to_ask_ = (next_to_ask_ + 1) % size;
    if (next_to_ask_ == options_.rank || detector_.has_peer(next_to_ask_)) continue;
    call(next_to_ask_);
    ++called;
  }
}

}  // namespace muster::collective
