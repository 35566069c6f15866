// Detects the rank that blocks a call: a silent rank, a late rank, or a rank that has left. The
// monitor reports messages and the passing of time; the detector returns the ranks to probe and the
// rank at fault.
//
// Time is counted in ticks in which the monitor was awake. A process that was stopped, or a machine
// that was suspended, has one long pause instead of many ticks, and does not blame other ranks for
// it.
//
// Pure. Thread-safety: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/collective/result.h"

namespace muster::collective {

class FailureDetector {
 public:
  using Milliseconds = std::chrono::milliseconds;

  struct Peer {
    int rank = 0;
    std::string host = {};
    Milliseconds patience{};  // silence after which it counts as stopped or disconnected
  };

  /// For a world of `size` ranks, of which this rank has connections to `peers`. `self` is the name
  /// of this rank in messages; `timeout` applies to ranks that are alive but late.
  FailureDetector(std::string self, int size, Milliseconds timeout, std::vector<Peer> peers);

  /// A connection to another rank was opened, or another connection to a known one.
  void add(Peer peer);
  bool has_peer(int rank) const;

  /// A message of rank `rank` arrived, which had entered `entered` calls.
  void note_alive(int rank);
  void note_alive(int rank, std::uint64_t entered);

  /// Rank `rank` has left after `entered` calls, or its connection has ended. Without `entered` it is
  /// gone, and its goodbye has not arrived here: how many calls it had entered is unknown.
  void departed(int rank);
  void departed(int rank, const std::string& host, std::optional<std::uint64_t> entered);

  /// A watch began. Returns the ranks to probe now: all peers, or some of them if the world is large,
  /// since every rank of a waiting world probes at the same moment.
  std::vector<int> begin();

  /// The last watch ended. Forgets outstanding probes.
  void end();

  /// `passed` has elapsed. At most `tick` of it counts, and less the later this thread woke.
  /// Returns the ranks to probe. In a large world each tick probes some of them, in turn.
  std::vector<int> tick(Milliseconds passed, Milliseconds tick);

  /// In a large world, a rank that waits asks every rank how many calls it has made. ask_anew()
  /// forgets all answers. ask_for_answers() returns the next ranks to ask: some of those whose
  /// answer is missing.
  void ask_anew();
  std::vector<int> ask_for_answers();

  /// The peer that has not answered within its patience, and `crowding` more, while call `what` waited.
  std::optional<Error> silent(const std::string& what, Milliseconds crowding = {}) const;

  /// The peer that left before it entered call number `entered`, named `what`. A peer of which that
  /// is unknown is not named: it may have entered the call, or the call may not need it.
  std::optional<Error> missing(std::uint64_t entered, const std::string& what) const;

  /// The peers that answer but have not entered the call after `waited`, as far as they are
  /// furthest behind: other late peers may wait for them in an earlier call. If no peer is behind,
  /// the error is that the call makes no progress, and names a peer that is gone after an unknown
  /// number of calls. Empty until every rank of the world has answered or left.
  std::optional<Error> late(std::uint64_t entered, Milliseconds waited,
                            const std::string& what) const;

 private:
  // In a large world, the number of peers that are probed at a time: a fifth, within these limits.
  static constexpr std::size_t kFewestAtOnce = 4;
  static constexpr std::size_t kMostAtOnce = 16;

  struct Place {
    Peer peer;
    std::uint64_t entered = 0;
    bool departed = false;
    bool has_unknown_calls = false;  // departed after an unknown number of calls
    bool asked = false;              // probed, without an answer yet
    bool answered = false;           // since the watch began
    Milliseconds silence{0};         // since the probe

    int rank() const { return peer.rank; }
  };

  Place* find(int rank);
  std::size_t at_once() const;
  std::string name_of(const Place& place) const;
  static void ask(Place& place, std::vector<int>& asked);
  std::vector<int> ask_next(std::size_t count);

  std::string self_;
  int size_;
  Milliseconds timeout_;
  std::vector<Place> places_;  // ascending by rank
  std::size_t turn_ = 0;
};

}  // namespace muster::collective
