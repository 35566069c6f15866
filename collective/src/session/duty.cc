// Who carries out what is agreed on.
#include <cstdio>
#include <utility>

#include "session/engine.h"

namespace muster::collective::session {
namespace {

std::optional<Deadline> earlier(std::optional<Deadline> one, std::optional<Deadline> other) {
  if (!one || !other) return one ? one : other;
  return std::min(*one, *other);
}

}  // namespace

bool Engine::step() {
  if (over_) return false;
  if (monitor()->failed()) {
    end(monitor()->failure());
    return true;
  }
  if (!next_record()) return false;
  if (const auto* batch = std::get_if<Batch>(&decoded_)) {
    carry_out(*batch);
  } else if (const auto* ids = std::get_if<Forget>(&decoded_)) {
    forget(*ids);
  } else if (const auto* joined = std::get_if<AllJoined>(&decoded_)) {
    all_joined(joined->last);
  } else {
    end(lost(std::get<Left>(decoded_).rank));
  }
  return true;
}

bool Engine::has_work() {
  if (over_) return false;
  if (monitor()->failed()) return true;
  if (rank() != 0) return channel_->has_next();
  if (is_unpublished_) return channel_->has_room_for(record_);
  channel_->collect();
  const std::lock_guard lock(coordinator_mutex_);
  return coordinator_->has_record();
}

// Everything that the bell rings for is looked at after its count was taken, `stopping_` like the
// rest: the ring of a leave() between the two would count as seen, and the thread sleep for ever.
void Engine::serve() {
  std::optional<Deadline> until;
  while (true) {
    const std::uint32_t seen = bell().count();
    if (stopping_) return;
    bool on_duty = duty_.try_lock();
    if (!on_duty) {
      // Whoever has duty may have looked for work for the last time already: it looks again for
      // this.
      patient_ = false;
      until.reset();
      wanted_.exchange(1);
      on_duty = duty_.try_lock();
    }
    if (on_duty) {
      const std::lock_guard duty(duty_, std::adopt_lock);
      wanted_.exchange(0);
      bell().attend();
      while (!stopping_ && step()) {
      }
      until = plan_to_wake();
      bell().rest(until ? Attention::kPatient : Attention::kAsleep);
      if (has_work()) continue;
    }
    bell().wait(seen, until);
  }
}

std::optional<Deadline> Engine::plan_to_wake() {
  const std::optional<Deadline> stall = earlier(report_stalls(), give_up_stalls());
  patient_ = stall.has_value();
  return earlier(stall, watch_over_unattended());
}

std::optional<Deadline> Engine::report_stalls() {
  const std::chrono::milliseconds patience = options_.stall_warning;
  if (!coordinator_ || over_ || patience <= std::chrono::milliseconds::zero()) return std::nullopt;
  std::vector<std::string> reports;
  std::optional<Deadline> next;
  {
    const std::lock_guard lock(coordinator_mutex_);
    reports = coordinator_->stalled(Clock::now(), patience);
    next = coordinator_->next_stall(patience);
  }
  for (const std::string& report : reports) {
    if (options_.on_stall) {
      options_.on_stall(report);
    } else {
      std::fprintf(stderr, "muster: %s\n", report.c_str());
    }
  }
  return next;
}

// What is given up is work for whoever has duty next.
std::optional<Deadline> Engine::give_up_stalls() {
  const std::chrono::milliseconds limit = options_.stall_limit;
  if (!coordinator_ || over_ || limit <= std::chrono::milliseconds::zero()) return std::nullopt;
  const std::lock_guard lock(coordinator_mutex_);
  coordinator_->give_up(Clock::now(), limit);
  return coordinator_->next_give_up(limit);
}

// Like a thread that waits, in place of those who do not.
std::optional<Deadline> Engine::watch_over_unattended() {
  const Deadline now = Clock::now();
  {
    const std::lock_guard lock(mutex_);
    if (unattended_ == 0) {
      watch_at_.reset();
    } else if (!watch_at_) {
      watch_at_ = now + kUntilOthersAreAsked;
    }
  }
  const bool watches = watch_at_ && now >= *watch_at_;
  watches_ = watches;
  if (!watches) {
    watch_.reset();
    has_seen_departed_ = false;
    return watch_at_;
  }
  if (!watch_) watch_.emplace(*monitor(), "the operations in flight");
  if (now >= look_at_) {
    look_at_ = now + kBetweenLooks;
    end_without(monitor()->departed(), has_seen_departed_);
  }
  return look_at_;
}

// A rank may go without a word to the session, as one does whose session could not start. What it
// has not handed over then never will be. What it has is in the log by now: it was there the last
// time, too, and the network had the time between.
void Engine::end_without(const std::vector<int>& departed, bool& seen_before) {
  if (departed.empty() || !std::exchange(seen_before, true)) return;
  while (step()) {
  }
  if (!over_) end(lost(departed.front()));
}

Engine::Duty Engine::try_duty() {
  if (!duty_.try_lock()) return nullptr;
  bell().attend();
  return Duty(this);
}

// What comes from now on rings the bell. What has come already, and what the thread does not know
// to wake for, is left to it. The thread may have been woken and found no duty to take, after this
// one looked; then this one looks again. `wanted_` is only taken back with duty, so that it is
// always seen by whoever has duty last.
void Engine::go_off_duty() {
  while (true) {
    const bool patient = patient_.load();
    bell().rest(patient ? Attention::kPatient : Attention::kAsleep);
    const bool ring = has_work() || (!patient && has_unwatched_names());
    duty_.unlock();
    if (ring) {
      bell().ring();
      return;
    }
    if (wanted_.fetch_or(0) == 0 || !duty_.try_lock()) return;
    wanted_.exchange(0);
  }
}

// Names that wait for a rank, which nobody would report.
bool Engine::has_unwatched_names() {
  constexpr auto kNever = std::chrono::milliseconds::zero();
  if (!coordinator_) return false;
  const std::lock_guard lock(coordinator_mutex_);
  return (options_.stall_warning > kNever && coordinator_->next_stall(options_.stall_warning)) ||
         (options_.stall_limit > kNever && coordinator_->next_give_up(options_.stall_limit));
}

}  // namespace muster::collective::session
