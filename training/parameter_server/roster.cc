#include "parameter_server/roster.h"

#include <algorithm>
#include <map>
#include <random>
#include <utility>

namespace muster::parameter_server {

std::uint64_t Clocks::slowest() const {
  if (clocks_.empty()) return last_slowest_;
  return std::min_element(clocks_.begin(), clocks_.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->second;
}

std::uint64_t Clocks::join(int worker) {
  const std::uint64_t clock = slowest();
  clocks_[worker] = clock;
  seen_.insert(worker);
  return clock;
}

void Clocks::begin_at(int worker, std::uint64_t clock) {
  const auto found = clocks_.find(worker);
  if (found != clocks_.end()) found->second = std::max(found->second, clock);
}

void Clocks::leave(int worker) {
  const auto found = clocks_.find(worker);
  if (found == clocks_.end()) return;
  if (clocks_.size() == 1) last_slowest_ = found->second;
  clocks_.erase(found);
}

void Clocks::advance(int worker) {
  const auto found = clocks_.find(worker);
  if (found != clocks_.end()) ++found->second;
}

bool Clocks::may_proceed(int worker) const {
  if (!is_complete()) return false;
  const auto found = clocks_.find(worker);
  if (found == clocks_.end()) return false;
  return !bound_ || found->second - slowest() <= *bound_;
}

namespace {

using collective::Error;
using collective::ErrorCode;
using collective::Result;
using collective::Status;

// A random start, so that a session of a restarted server is not confused with an earlier session.
std::uint64_t any_number() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) + device();
}

Error ended() {
  return {ErrorCode::kPeerLost, "this worker's session has ended",
          "another worker has joined with the same number, or the connection was cut"};
}

Error too_many(int worker) {
  return {ErrorCode::kBadArgument,
          "worker " + std::to_string(worker) + " has too many calls that wait",
          "an abandoned call keeps waiting until the worker leaves"};
}

Error stopping() {
  return {ErrorCode::kPeerLost, "the parameter server is stopping"};
}

}  // namespace

Roster::Roster(std::optional<std::uint64_t> staleness, int expected_workers)
    : clocks_(staleness, expected_workers), next_session_(any_number()) {}

Roster::Membership Roster::join(int worker, std::function<void()> dismiss) {
  const std::lock_guard lock(mutex_);
  const auto before = std::find_if(members_.begin(), members_.end(), [&](const auto& member) {
    return member.second.worker == worker;
  });
  if (before != members_.end()) {
    before->second.dismiss();
    remove(before->first, departures_.lost);
  }
  const std::uint64_t session = next_session_++;
  if (stopped_) dismiss();
  members_.emplace(session, Member{.worker = worker, .dismiss = std::move(dismiss)});
  any_worker_joined_ = true;
  const std::uint64_t clock = clocks_.join(worker);
  changed_.notify_all();
  return {.session = session, .clock = clock};
}

void Roster::begin_at(std::uint64_t session, std::uint64_t clock) {
  const std::lock_guard lock(mutex_);
  const auto member = members_.find(session);
  if (member == members_.end()) return;
  clocks_.begin_at(member->second.worker, clock);
  changed_.notify_all();
}

void Roster::remove(std::uint64_t session, std::uint64_t& count) {
  const auto member = members_.find(session);
  if (member == members_.end()) return;
  clocks_.leave(member->second.worker);
  members_.erase(member);
  ++count;
  changed_.notify_all();
}

void Roster::leave(std::uint64_t session) {
  const std::lock_guard lock(mutex_);
  remove(session, departures_.left);
}

void Roster::lose(std::uint64_t session) {
  const std::lock_guard lock(mutex_);
  remove(session, departures_.lost);
}

bool Roster::has(std::uint64_t session) const {
  const std::lock_guard lock(mutex_);
  return members_.contains(session);
}

Result<Roster::Turn> Roster::begin_turn(std::uint64_t session) {
  const std::lock_guard lock(mutex_);
  const auto member = members_.find(session);
  if (member == members_.end()) return ended();
  if (std::exchange(member->second.brings_values, true)) {
    return Error{
        ErrorCode::kBadArgument,
        "worker " + std::to_string(member->second.worker) + " already sends values in another call",
        "finish one push before the next begins"};
  }
  return Turn(*this, session, member->second.worker);
}

void Roster::end_turn(std::uint64_t session) {
  const std::lock_guard lock(mutex_);
  const auto member = members_.find(session);
  if (member != members_.end()) member->second.brings_values = false;
}

Status Roster::admit(std::uint64_t session, std::uint64_t step) {
  std::unique_lock lock(mutex_);
  const auto member = members_.find(session);
  if (member == members_.end()) return ended();
  const int worker = member->second.worker;
  const std::uint64_t clock = clocks_.present().at(worker);
  if (clock != step) {
    return Error{ErrorCode::kMismatch, "worker " + std::to_string(worker) + " sent step " +
                                           std::to_string(step) + ", but is in step " +
                                           std::to_string(clock)};
  }
  return wait(lock, session, [worker](const Clocks& clocks) { return clocks.may_proceed(worker); });
}

Status Roster::wait_until(std::uint64_t session, const std::function<bool(const Clocks&)>& ready) {
  std::unique_lock lock(mutex_);
  return wait(lock, session, ready);
}

Status Roster::wait(std::unique_lock<std::mutex>& lock, std::uint64_t session,
                    const std::function<bool(const Clocks&)>& ready) {
  while (true) {
    if (stopped_) return stopping();
    const auto member = members_.find(session);
    if (member == members_.end()) return ended();
    if (ready(clocks_)) return {};
    if (member->second.waiting == kMostWaiting) return too_many(member->second.worker);
    ++member->second.waiting;
    changed_.wait(lock);
    // The member may have left in the meantime, with its count.
    const auto still = members_.find(session);
    if (still != members_.end()) --still->second.waiting;
  }
}

void Roster::wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void Roster::advance(std::uint64_t session) {
  const std::lock_guard lock(mutex_);
  const auto member = members_.find(session);
  if (member == members_.end()) return;
  clocks_.advance(member->second.worker);
  changed_.notify_all();
}

bool Roster::all_workers_left() const {
  return any_worker_joined_ && clocks_.is_complete() && members_.empty();
}

bool Roster::wait_for_end() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopped_ || all_workers_left(); });
  return !stopped_early_;
}

void Roster::wait_for_stop() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopped_; });
}

void Roster::stop() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(stopped_, true)) return;
  // Dismissed workers leave soon, which does not count as all workers having left.
  stopped_early_ = !all_workers_left();
  for (auto& [session, member] : members_) member.dismiss();
  changed_.notify_all();
}

Roster::Departures Roster::departures() const {
  const std::lock_guard lock(mutex_);
  return departures_;
}

std::vector<WorkerStatus> Roster::workers() const {
  const std::lock_guard lock(mutex_);
  std::map<int, bool> waits;
  for (const auto& [session, member] : members_) waits[member.worker] = member.waiting > 0;
  std::vector<WorkerStatus> workers;
  for (const auto& [worker, clock] : clocks_.present()) {
    workers.push_back({.worker = worker, .clock = clock, .waits = waits[worker]});
  }
  return workers;
}

}  // namespace muster::parameter_server
