// The execution of the coordinator's records, one after the other, on every rank.

#include <algorithm>
#include <cstdio>
#include <utility>

#include "session/engine.h"

namespace muster::collective::session {

bool Engine::next_record() {
  return rank() == 0 ? cut_record() : read_record();
}

bool Engine::cut_record() {
  if (!is_unpublished_) {
    channel_->collect();
    std::uint64_t bytes = 0;
    {
      const std::lock_guard lock(coordinator_mutex_);
      if (!coordinator_->has_record()) return false;
      decoded_ = coordinator_->cut();
      bytes = coordinator_->cut_bytes();
    }
    if (std::holds_alternative<AllJoined>(decoded_)) channel_->all_joined();
    if (const auto* batch = std::get_if<Batch>(&decoded_)) {
      for (const Entry& entry : batch->entries) channel_->finished(entry.tally, entry.hand_overs);
      tune(*batch, bytes);
    }
    record_ = encode(decoded_);
  }
  is_unpublished_ = !channel_->publish(record_);
  return !is_unpublished_;
}

bool Engine::read_record() {
  switch (channel_->next(record_)) {
    case Channel::Next::kNothing:
      return false;
    case Channel::Next::kRankZeroLeft:
      decoded_ = Left{0};
      return true;
    case Channel::Next::kDamaged:
      damaged(0);
      return false;
    case Channel::Next::kRecord:
      break;
  }
  if (is_batch(record_)) {
    if (!std::holds_alternative<Batch>(decoded_)) decoded_ = Batch{};
    if (decode_batch(record_, std::get<Batch>(decoded_))) return true;
  } else if (std::optional<Record> record = decode_record(record_)) {
    decoded_ = *std::move(record);
    return true;
  }
  damaged(0);
  return false;
}

// Finds this rank's operations for the names of a batch. Returns false if the batch does not match
// them.
bool Engine::find_items(const Batch& batch) {
  items_.clear();
  names_.clear();
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : batch.entries) {
    KnownName* name = nullptr;
    if (entry.news) {
      name = &*known_.try_emplace(entry.news->name).first;
      name->second.id = entry.id;
      name->second.agreed = entry.news;
      name->second.received.clear();
      if (entry.id != 0) by_id_[entry.id] = name;
    } else {
      const auto found = by_id_.find(entry.id);
      if (found == by_id_.end()) return false;
      name = found->second;
    }
    Known& known = name->second;
    const bool stands_in = known.agreed->error || join_ != nullptr;
    if (known.in_flight == nullptr && !stands_in) return false;
    names_.push_back(name);
    items_.push_back(
        {.operation = known.in_flight, .agreed = known.agreed.get(), .received = &known.received});
  }
  return !items_.empty();
}

void Engine::carry_out(const Batch& batch) {
  const bool traces = traces_.load(std::memory_order_relaxed);
  const Deadline agreed = traces ? Clock::now() : Deadline{};
  if (!find_items(batch)) {
    damaged(0);
    return;
  }
  const Deadline begun = traces ? Clock::now() : Deadline{};
  const std::uint64_t calls = executor_.calls();
  executor_.carry_out(items_);
  if (traces) trace(batch, agreed, begun, executor_.calls() != calls);
  finish_items();
  look_for_stragglers();
}

void Engine::finish_items() {
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].operation == nullptr) continue;
      names_[i]->second.in_flight = nullptr;
      settle(*items_[i].operation, items_[i].outcome);
      // A world of one rank never agrees on a name again.
      if (!channel_) known_.erase(known_.find(names_[i]->first));
    }
  }
  report_settled();
}

// Requires the lock of the table. After this call a waiting thread may return the operation.
void Engine::settle(Operation& operation, const Status& outcome) {
  memory_in_use_.remove(operation, operation.memory);
  end_watch_over(operation);
  if (operation.then) {
    to_call_.emplace_back(std::move(operation.then), outcome);
    operations_.give_back(operation);
    return;
  }
  operation.outcome = outcome;
  const auto before = operation.state.exchange(Operation::kDone, std::memory_order_acq_rel);
  if (before == Operation::kAwaited) to_wake_.push_back(&operation);
}

void Engine::report_settled() {
  for (Operation* const operation : to_wake_) futex_wake(operation->state, INT32_MAX);
  to_wake_.clear();
  for (const auto& [then, outcome] : std::exchange(to_call_, {})) then(outcome);
}

// Operations that this rank has handed over by id alone are sent again by name.
void Engine::forget(const Forget& forget) {
  std::vector<Bytes> again;
  {
    const std::lock_guard lock(mutex_);
    for (const std::uint32_t id : forget.ids) {
      const auto found = by_id_.find(id);
      if (found == by_id_.end()) continue;
      KnownName& name = *found->second;
      by_id_.erase(found);
      Known& known = name.second;
      known.id = 0;
      if (known.in_flight == nullptr) {
        known_.erase(known_.find(name.first));
      } else if (known.sent_by_id) {
        known.sent_by_id = false;
        again.push_back(encode_new(name.first, known.last_request));
      }
    }
  }
  for (const Bytes& message : again) send_to_coordinator(message, std::nullopt);
}

void Engine::all_joined(int last) {
  last_joined_.store(last, std::memory_order_release);
  {
    const std::lock_guard lock(mutex_);
    Operation* const operation = std::exchange(join_, nullptr);
    if (operation != nullptr) settle(*operation, {});
  }
  report_settled();
}

void Engine::end(const Error& why) {
  over_ = true;
  {
    const std::lock_guard lock(mutex_);
    ended_ = why;
    const auto fail = [&](Operation*& in_flight) {
      Operation* const operation = std::exchange(in_flight, nullptr);
      if (operation == nullptr) return;
      Error error = why;
      error.message += ", with '" + operation->name + "' pending";
      settle(*operation, error);
    };
    for (auto& [name, known] : known_) fail(known.in_flight);
    fail(join_);
  }
  report_settled();
}

Error Engine::lost(int other) const {
  return {.code = ErrorCode::kPeerLost,
          .message = base_.world.name_of(other) + " has left the session",
          .advice = "all ranks must hand over the same operations before a rank leaves",
          .rank = other,
          .host = base_.world.hosts[static_cast<std::size_t>(other)]};
}

// A rank sent an invalid message: it runs another version, or another program.
void Engine::damaged(int from) {
  if (monitor() == nullptr) return;
  monitor()->fail({.code = ErrorCode::kMismatch,
                   .message = base_.world.name_of(from) + " sent " + base_.world.name_of(rank()) +
                              " an invalid session message",
                   .advice = "all ranks must run the same version of the library",
                   .rank = from,
                   .host = base_.world.hosts[static_cast<std::size_t>(from)]});
}

void Engine::trace(const Batch& batch, Deadline agreed, Deadline begun, bool was_called) {
  const std::shared_ptr<Timeline> timeline = this->timeline();
  if (!timeline) return;
  const Deadline ended = Clock::now();
  if (marks_cycles_) timeline->mark_cycle(begun);
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const Operation* const operation = items_[i].operation;
    if (operation == nullptr || operation->handed_over == Deadline{}) continue;
    timeline->add({.name = operation->name,
                   .operation = to_string(operation->request.call.kind),
                   .bytes = bytes_of(operation->request),
                   .call = was_called ? executor_.calls() : 0,
                   .last_rank = batch.entries[i].last,
                   .failed = !items_[i].outcome,
                   .handed_over = operation->handed_over,
                   .agreed = agreed,
                   .begun = begun,
                   .ended = ended});
  }
}

std::shared_ptr<Timeline> Engine::timeline() {
  const std::lock_guard lock(timeline_mutex_);
  return timeline_;
}

// After a batch, so that an idle session does nothing. Every rank sends what it has measured in a
// window; rank 0 judges the reports that have arrived.
void Engine::look_for_stragglers() {
  if (!channel_ || options_.slow_window <= std::chrono::milliseconds::zero()) return;
  const Deadline now = Clock::now();
  if (now < next_measurement_) return;
  // Rank 0 judges half a window after the others have measured, when it has their reports.
  const bool is_first = next_measurement_ == Deadline{};
  next_measurement_ = now + options_.slow_window;
  if (coordinator_ && is_first) next_measurement_ += options_.slow_window / 2;
  const LinkReport links = link_meter_.measure(base_.world, now);
  if (!links.links.empty()) send_to_coordinator(encode(links), std::nullopt);
  if (!coordinator_) return;
  std::optional<Slowness> slowness;
  {
    const std::lock_guard lock(coordinator_mutex_);
    slowness = coordinator_->judge(now);
  }
  if (slowness) report(*slowness, now);
}

void Engine::report(const Slowness& slowness, Deadline now) {
  report_metrics(slowness);
  const std::shared_ptr<Timeline> timeline = this->timeline();
  for (const Finding& finding : findings(slowness, base_.world.hosts)) {
    if (timeline) timeline->mark(finding.what, finding.sentence, now);
    if (!finding.is_new) continue;
    if (options_.on_slow) {
      options_.on_slow(finding.sentence);
    } else {
      std::fprintf(stderr, "muster: %s\n", finding.sentence.c_str());
    }
  }
}

void Engine::tune(const Batch& batch, std::uint64_t bytes) {
  if (!autotune_ || !autotune_->on_batch(batch, bytes, Clock::now())) return;
  {
    const std::lock_guard lock(coordinator_mutex_);
    coordinator_->set_fusion_bytes(autotune_->current());
  }
  if (autotune_log_.is_open()) autotune_log_ << autotune_->take_log() << std::flush;
  if (autotune_->is_done()) autotune_.reset();
}

// Which thread executes records.
namespace {

// The pause between the attempts of the session's thread to go on duty while another thread is, if it
// has to begin or end a watch. A thread that waits in slices, usually of 100 ms, is on duty for a
// short time at the beginning of each slice. The pause differs from a slice, so that the attempts do
// not come at the beginning of each slice, too.
constexpr std::chrono::milliseconds kBetweenTries{30};

std::optional<Deadline> earlier(std::optional<Deadline> one, std::optional<Deadline> other) {
  if (!one || !other) return one ? one : other;
  return std::min(*one, *other);
}

}  // namespace

// Messages between two ranks continue when a third rank has left.
bool Engine::step() {
  const bool moved = mail_->collect();
  if (over_) return moved;
  if (monitor()->failed()) {
    end(monitor()->failure());
    return true;
  }
  if (!next_record()) return moved;
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
  if (mail_->has_work()) return true;
  if (over_) return false;
  if (monitor()->failed()) return true;
  if (rank() != 0) return channel_->has_next();
  if (is_unpublished_) return channel_->has_room_for(record_);
  channel_->collect();
  const std::lock_guard lock(coordinator_mutex_);
  return coordinator_->has_record();
}

// Everything that the bell rings for is checked after the bell's count was taken, and so is
// `stopping_`: otherwise the ring of a leave() between the two would count as seen, and the thread
// would sleep for ever.
void Engine::serve() {
  std::optional<Deadline> until;
  while (true) {
    const std::uint32_t seen = bell().count();
    if (stopping_) return;
    bool on_duty = duty_.try_lock();
    if (!on_duty) {
      // The thread on duty may have looked for work for the last time: `look_again_` makes it look
      // again.
      patient_ = false;
      until.reset();
      look_again_.exchange(1);
      on_duty = duty_.try_lock();
      // The thread on duty looks for work, but only this thread begins and ends the watch. The ring
      // for that comes once, and may be the one that has just woken this thread.
      if (!on_duty && (watches_ || has_unattended())) until = Clock::now() + kBetweenTries;
    }
    if (on_duty) {
      const std::lock_guard duty(duty_, std::adopt_lock);
      look_again_.exchange(0);
      bell().attend();
      while (!stopping_ && step()) {
      }
      until = plan_to_wake();
      bell().rest(patient_ ? Attention::kPatient : Attention::kAsleep);
      // A hand-over between the plan and this rest has rung no bell.
      if (has_work() || (!patient_ && has_unwatched_names())) continue;
    }
    bell().wait(seen, until);
  }
}

// A deadline for names that wait comes early enough for every name that is handed over later: such
// a name does not ring the bell of a patient thread.
std::optional<Deadline> Engine::plan_to_wake() {
  const Deadline now = Clock::now();
  std::optional<Deadline> stall = earlier(report_stalls(), give_up_stalls());
  for (const std::chrono::milliseconds patience : {options_.stall_warning, options_.stall_limit}) {
    if (stall && patience > std::chrono::milliseconds::zero()) {
      stall = std::min(*stall, now + patience);
    }
  }
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

// Operations that reach the stall limit become work for the next thread on duty.
std::optional<Deadline> Engine::give_up_stalls() {
  const std::chrono::milliseconds limit = options_.stall_limit;
  if (!coordinator_ || over_ || limit <= std::chrono::milliseconds::zero()) return std::nullopt;
  const std::lock_guard lock(coordinator_mutex_);
  coordinator_->give_up(Clock::now(), limit);
  return coordinator_->next_give_up(limit);
}

// Watches operations that no thread waits for.
std::optional<Deadline> Engine::watch_over_unattended() {
  const Deadline now = Clock::now();
  std::uint64_t oldest = 0;
  {
    const std::lock_guard lock(mutex_);
    if (oldest_unattended_ == nullptr) {
      watch_at_.reset();
    } else {
      oldest = Operations::ticket_of(*oldest_unattended_).id;
      if (!watch_at_) watch_at_ = now + kUntilOthersAreAsked;
    }
  }
  const bool watches = watch_at_ && now >= *watch_at_;
  watches_ = watches;
  if (!watches) {
    watch_.reset();
    has_seen_departed_ = false;
    return watch_at_;
  }
  // At every moment such an operation may be in flight, although each ends soon. But the end of other
  // operations is no progress of one that stays, for example because a rank does not submit it.
  const bool has_progress = std::exchange(seen_oldest_, oldest) != oldest;
  if (!watch_) {
    watch_.emplace(*monitor(), "the operations in flight");
  } else if (has_progress) {
    watch_->renew();
  }
  if (now >= look_at_) {
    look_at_ = now + kBetweenLooks;
    end_without(monitor()->departed_in_step(), has_seen_departed_);
  }
  return look_at_;
}

// A rank may leave without a message to the session, for example if its session could not start. It
// will never hand over anything else. What it has handed over is in the log by now: the departure
// was seen in the previous check, too, and messages had the time in between to arrive.
void Engine::end_without(const std::vector<int>& departed, bool& seen_before) {
  if (departed.empty() || !std::exchange(seen_before, true)) return;
  while (step()) {
  }
  for (const int rank : departed) mail_->departed(rank);
  if (!over_) end(lost(departed.front()));
}

Engine::Duty Engine::try_duty() {
  if (!duty_.try_lock()) return nullptr;
  bell().attend();
  return Duty(this);
}

// New work rings the bell from here on. Work that has come already, and work that rings no bell, is
// left to the session's thread. That thread may have been woken and found the duty taken after this
// thread looked; then this thread looks again. `look_again_` is reset only on duty, so the last
// thread on duty always sees it.
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
    if (look_again_.fetch_or(0) == 0 || !duty_.try_lock()) return;
    look_again_.exchange(0);
  }
}

bool Engine::has_unattended() const {
  const std::lock_guard lock(mutex_);
  return oldest_unattended_ != nullptr;
}

// Names that wait for a rank, which no other thread would report.
bool Engine::has_unwatched_names() {
  constexpr auto kNever = std::chrono::milliseconds::zero();
  if (!coordinator_ || over_) return false;
  const std::lock_guard lock(coordinator_mutex_);
  return (options_.stall_warning > kNever && coordinator_->next_stall(options_.stall_warning)) ||
         (options_.stall_limit > kNever && coordinator_->next_give_up(options_.stall_limit));
}

}  // namespace muster::collective::session
