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

  /// `self` is the name of this rank in messages; `timeout` applies to ranks that are alive but
  /// late.
  FailureDetector(std::string self, Milliseconds timeout, std::vector<Peer> peers);

  /// A message of peer `index` arrived, which had entered `entered` calls.
  void heard(std::size_t index);
  void heard(std::size_t index, std::uint64_t entered);

  /// Peer `index` has sent a goodbye, or its connection has ended.
  void departed(std::size_t index);
  bool has_departed(std::size_t index) const { return places_[index].departed; }

  /// A watch began. Returns the indices of the peers to probe now: all of them, or some if there
  /// are very many, since every rank of a waiting world probes at the same moment.
  std::vector<std::size_t> begin();

  /// The last watch ended. Forgets outstanding probes.
  void end();

  /// `passed` has elapsed, of which at most `tick` counts. Returns the peers to probe. If there are
  /// very many peers, each tick probes some of them, in turn.
  std::vector<std::size_t> tick(Milliseconds passed, Milliseconds tick);

  /// The peer that has not answered within its patience while call `what` waited.
  std::optional<Error> silent(const std::string& what) const;

  /// The peer that left before it entered call number `entered`, named `what`.
  std::optional<Error> missing(std::uint64_t entered, const std::string& what) const;

  /// The peers that answer but have not entered the call after `waited`, as far as they are
  /// furthest behind: other late peers may wait for them in an earlier call. If no peer is behind,
  /// the error is that the call makes no progress.
  std::optional<Error> late(std::uint64_t entered, Milliseconds waited,
                            const std::string& what) const;

 private:
  static constexpr std::size_t kAskedAtOnce = 16;
  static constexpr std::size_t kAskedFirst = 64;

  struct Place {
    Peer peer;
    std::uint64_t entered = 0;
    bool departed = false;
    bool asked = false;       // probed, without an answer yet
    Milliseconds silence{0};  // since the probe
  };

  bool probes_in_turn() const { return places_.size() > kAskedFirst; }
  std::string name_of(const Place& place) const;
  void ask(std::size_t index, std::vector<std::size_t>& asked);
  void ask_next(std::size_t count, std::vector<std::size_t>& asked);

  std::string self_;
  Milliseconds timeout_;
  std::vector<Place> places_;
  std::size_t turn_ = 0;
  std::size_t in_turn_ = 0;  // ranks whose turn has come since the watch began
};

}  // namespace muster::collective
