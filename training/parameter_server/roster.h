// The workers of a server: their clocks, and the calls that wait for slower workers.
//
// Bounded staleness (Ho et al., "More effective distributed ML via a stale synchronous parallel
// parameter server", NIPS 2013): the clock of a worker is the number of steps it has pushed. No
// worker may be more than `bound` steps ahead of the slowest one.
//
// Bound 0 is synchronous: a pull waits until every worker has pushed the step before. Without a
// bound no call waits: asynchronous. A worker that has left delays no other; a late worker begins
// at the step of the slowest.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/collective/result.h"
#include "muster/parameter_server/status.h"

namespace muster::parameter_server {

/// The clocks of the workers, without waiting and without locks. Pure.
class Clocks {
 public:
  /// No worker may proceed before `expected` different workers have joined.
  Clocks(std::optional<std::uint64_t> bound, int expected) : bound_(bound), expected_(expected) {}

  /// Adds a worker, which must not be present, and returns its first step.
  std::uint64_t join(int worker);

  /// Raises the clock of a worker that has just joined to `clock`, unless it is higher.
  void begin_at(int worker, std::uint64_t clock);

  void leave(int worker);

  /// The worker has pushed its step.
  void advance(int worker);

  bool may_proceed(int worker) const;

  /// Whether all expected workers have joined, even if some have left since.
  bool is_complete() const { return static_cast<int>(seen_.size()) >= expected_; }

  /// The present workers and their clocks.
  const std::map<int, std::uint64_t>& present() const { return clocks_; }

 private:
  std::uint64_t slowest() const;

  std::optional<std::uint64_t> bound_;
  int expected_;
  std::map<int, std::uint64_t> clocks_;
  std::set<int> seen_;
  std::uint64_t last_slowest_ =
      0;  // of workers that have left; the first step if no worker is present
};

/// The clocks behind a lock, with the threads of calls that wait for slower workers.
///
/// A worker belongs to a server from join() to leave() or lose(). Its calls carry the number of its
/// session, so that calls of a lost worker, or of an earlier start of the same worker, are
/// detected.
///
/// Thread-safety: all functions may be called from any thread.
class Roster {
 public:
  /// The limit of waiting calls of one worker. Each call holds a thread, even after the worker hung
  /// up.
  static constexpr int kMostWaiting = 8;

  struct Membership {
    std::uint64_t session;
    std::uint64_t clock;  // the step that the worker begins in
  };

  /// Exists while a call of the worker sends values. A push is one step of the worker's clock, and
  /// its memory is allocated before the values arrive. The roster outlives it.
  class Turn {
   public:
    Turn(Roster& roster, std::uint64_t session, int worker)
        : roster_(&roster), session_(session), worker_(worker) {}
    Turn(Turn&& other) noexcept
        : roster_(std::exchange(other.roster_, nullptr)),
          session_(other.session_),
          worker_(other.worker_) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (roster_ != nullptr) roster_->end_turn(session_);
    }

    int worker() const { return worker_; }

   private:
    Roster* roster_;
    std::uint64_t session_;
    int worker_;
  };

  struct Departures {
    std::uint64_t left = 0;
    std::uint64_t lost = 0;
  };

  /// The arguments are ServerOptions::staleness and ::workers.
  Roster(std::optional<std::uint64_t> staleness, int expected_workers);

  /// Adds a worker. `dismiss` is called at most once, under the roster's lock, when the worker has
  /// to leave: another worker of the same number has joined, which makes this one lost, or the
  /// server ends.
  Membership join(int worker, std::function<void()> dismiss);

  /// The worker, which has just joined, begins at `clock`, if that is later than its step here.
  ///
  /// Without this, a late worker would be in different steps on two servers whose slowest workers
  /// are in different steps. It could then wait for a worker on one server that waits for it on the
  /// other.
  void begin_at(std::uint64_t session, std::uint64_t clock);

  /// The worker left, with or without a goodbye. Without effect if its session has ended already.
  void leave(std::uint64_t session);
  void lose(std::uint64_t session);

  /// Whether the session has not ended.
  bool has(std::uint64_t session) const;

  /// Errors: kPeerLost if the session has ended; kBadArgument while another call of the worker
  /// sends values.
  collective::Result<Turn> begin_turn(std::uint64_t session);

  /// Waits until the worker may pull or push in its step `step`.
  ///
  /// Errors: kMismatch if the worker is in another step; kPeerLost if its session or the server
  /// ends; kBadArgument if kMostWaiting of its calls wait already.
  collective::Status admit(std::uint64_t session, std::uint64_t step);

  /// Waits until `ready` returns true. It is called under the roster's lock with the present
  /// workers. Errors: kPeerLost and kBadArgument as for admit().
  collective::Status wait_until(std::uint64_t session,
                                const std::function<bool(const Clocks&)>& ready);

  /// Makes wait_until() check its condition again.
  void wake();

  /// The push of the worker was applied.
  void advance(std::uint64_t session);

  /// Waits until all expected workers, and at least one, have joined and left, or until stop().
  /// Returns whether all had left.
  bool wait_for_end();

  /// Waits until stop().
  void wait_for_stop();

  /// Dismisses all workers; waiting calls return an error.
  void stop();

  Departures departures() const;
  std::vector<WorkerStatus> workers() const;

 private:
  struct Member {
    int worker;
    std::function<void()> dismiss;
    int waiting = 0;  // calls
    bool brings_values = false;
  };

  void end_turn(std::uint64_t session);

  bool all_workers_left() const;
  void remove(std::uint64_t session, std::uint64_t& count);
  collective::Status wait(std::unique_lock<std::mutex>& lock, std::uint64_t session,
                          const std::function<bool(const Clocks&)>& ready);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Clocks clocks_;
  std::map<std::uint64_t, Member> members_;  // by session
  std::uint64_t next_session_;
  Departures departures_;
  bool any_worker_joined_ = false;
  bool stopped_ = false;
  bool stopped_early_ = false;  // before all expected workers had left
};

}  // namespace muster::parameter_server
