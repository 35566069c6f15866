#include <algorithm>
#include <bit>
#include <utility>

#include "control/monitor_impl.h"

namespace muster::collective {
namespace {

using std::chrono::milliseconds;

// Ticks for which a rank probes on behalf of other ranks after their last probe. Longer than it
// takes to probe all neighbours in turn.
constexpr int kDeputyTicks = 10;

// At the timeout of a call: the pause between the ranks that begin to ask all others, and the ranks
// to which they connect at a time.
constexpr milliseconds kBetweenRollCalls{50};
constexpr int kCalledAtOnce = 16;

}  // namespace

void Monitor::Impl::pass_time() {
  const Lock lock(mutex_);
  if (failure_) return;
  if (repair_at_ && Clock::now() >= *repair_at_) repair();
  resolve_suspects();
  if (deputy_reach_ > 0 && Clock::now() >= deputy_until_) {
    deputy_reach_ = 0;
    if (!patrols()) detector_.end();
  }
  if (!patrols()) return;
  const auto passed = std::chrono::floor<milliseconds>(Clock::now() - last_tick_);
  if (passed >= tick_) {
    last_tick_ = Clock::now();
    ask(detector_.tick(passed, tick_));
    // If more than a tick has passed, this process itself was paused: the rest is not counted.
    for (auto& [id, watching] : watches_) watching.waited += std::min(passed, tick_);
    if (!is_complete()) take_roll();
  }
  judge(watches_.empty() ? nullptr : &watches_.begin()->second);
}

void Monitor::Impl::judge(const Watching* watching) {
  if (watching == nullptr) {
    if (std::optional<Error> error = detector_.silent("a call of another rank")) {
      fail_locked(*std::move(error));
    }
    return;
  }
  const std::uint64_t entered = monitor_.entered_.load(std::memory_order_relaxed);
  std::optional<Error> error = detector_.missing(entered, watching->what);
  if (!error) error = detector_.silent(watching->what);
  if (!error && (is_complete() || takes_roll_)) {
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
    tell(index, sign_of_life(FrameKind::kProbe));
  }
}

// The reach of a probe that is sent now. The graph has no two ranks that are further apart.
int Monitor::Impl::reach() const {
  if (is_complete()) return 0;
  if (watches_.empty()) return std::max(0, deputy_reach_ - 1);
  return static_cast<int>(std::bit_width(static_cast<unsigned>(switchboard_->size())));
}

void Monitor::Impl::begin_patrol() {
  last_tick_ = Clock::now();
  ask(detector_.begin());
}

// A lower reach does not prolong a higher one. So two neighbours that probe only because the other
// one does stop after a while.
void Monitor::Impl::deputize(int reach) {
  if (reach == 0 || reach < deputy_reach_ || failure_) return;
  const bool begins = !patrols();
  deputy_reach_ = reach;
  deputy_until_ = Clock::now() + kDeputyTicks * tick_;
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

void Monitor::Impl::unwatch(std::uint64_t id) {
  const Lock lock(mutex_);
  watches_.erase(id);
  if (!watches_.empty()) return;
  takes_roll_ = false;
  if (!patrols()) detector_.end();
}

// At the timeout: connects to all ranks and asks each for its calls.
void Monitor::Impl::take_roll() {
  if (watches_.empty()) return;
  const int size = switchboard_->size();
  const milliseconds pause = std::min(options_.timeout, size * kBetweenRollCalls);
  const milliseconds waited = watches_.begin()->second.waited;
  if (waited < options_.timeout + pause * options_.rank / size) return;
  if (!std::exchange(takes_roll_, true)) detector_.ask_anew();
  ask(detector_.ask_for_answers());
  int called = 0;
  for (int steps = 0; steps < size && called < kCalledAtOnce; ++steps) {
    next_in_roll_ = (next_in_roll_ + 1) % size;
    if (next_in_roll_ == options_.rank || detector_.knows(next_in_roll_)) continue;
    call(next_in_roll_);
    ++called;
  }
}

}  // namespace muster::collective
