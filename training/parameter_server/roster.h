// Who is there, and who has to wait: the clocks of the workers behind a lock, with the threads of
// calls that wait for slower workers.
//
// A worker belongs to a server from join() to leave() or lose(), under a session number that its
// calls carry: so a call of one that was lost, or of the same worker before it was started anew, is
// known as such.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/collective/result.h"
#include "muster/parameter_server/status.h"
#include "parameter_server/clocks.h"

namespace muster::parameter_server {

class Roster {
 public:
  /// Calls of one worker: each holds a thread, also when the worker has long hung up on it.
  static constexpr int kMostWaiting = 8;

  struct Membership {
    std::uint64_t session;
    std::uint64_t clock;  // the step that the worker begins in
  };

  /// While it lives the worker brings values, in one call: a push is a step of its clock, and the
  /// memory for it is taken before the values come. The roster outlives it.
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

  /// As ServerOptions::staleness and ::workers.
  Roster(std::optional<std::uint64_t> staleness, int expected_workers);

  /// A worker has come. `dismiss` is called, under the roster's lock and at most once, when it has
  /// to go: another of the same number has come, which counts this one as lost, or the server ends.
  Membership join(int worker, std::function<void()> dismiss);

  /// It said goodbye, or went without. Nothing where its session has ended before.
  void leave(std::uint64_t session);
  void lose(std::uint64_t session);

  /// Errors: kPeerLost where the session has ended; kBadArgument while another of its calls brings
  /// values.
  collective::Result<Turn> begin_turn(std::uint64_t session);

  /// Waits until the worker may pull or push in its step `step`.
  ///
  /// Errors: kMismatch where it is in another step; kPeerLost where its session ends, or the
  /// server; kBadArgument where kMostWaiting of its calls wait already.
  collective::Status admit(std::uint64_t session, std::uint64_t step);

  /// Waits until `ready`, which is called under the roster's lock with who is there. Errors:
  /// kPeerLost and kBadArgument as of admit().
  collective::Status wait_until(std::uint64_t session,
                                const std::function<bool(const Clocks&)>& ready);

  /// Something that a wait_until() waits for may have changed.
  void wake();

  /// The worker's push has been applied.
  void advance(std::uint64_t session);

  /// Waits until all workers that were expected, and one at least, have been there and gone, or
  /// until stop(): whether all had gone by then.
  bool wait_for_end();

  /// Dismisses everyone; whoever waits gets an error.
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

  bool all_have_gone() const;
  void remove(std::uint64_t session, std::uint64_t& count);
  collective::Status wait(std::unique_lock<std::mutex>& lock, std::uint64_t session,
                          const std::function<bool(const Clocks&)>& ready);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Clocks clocks_;
  std::map<std::uint64_t, Member> members_;  // by session
  std::uint64_t next_session_;
  Departures departures_;
  bool someone_was_there_ = false;
  bool stopped_ = false;
  bool stopped_early_ = false;  // with workers still there, or still to come
};

}  // namespace muster::parameter_server
