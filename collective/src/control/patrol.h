// Finds out who holds up a call: who is silent, who is late, who has left too early. The monitor
// tells it what it hears and when time passes; it says whom to ask and who is to blame.
//
// Time comes as ticks in which the monitor was awake. A process that was stopped, or a machine that
// slept, has one long pause and not many ticks: it does not blame the others for its own absence.
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

class Patrol {
 public:
  using Milliseconds = std::chrono::milliseconds;

  struct Peer {
    int rank = 0;
    std::string host = {};
    Milliseconds patience{};  // silence after which it counts as stopped or cut off
  };

  /// `self` is the name of this rank in messages; `timeout` is for who is alive but late.
  Patrol(std::string self, Milliseconds timeout, std::vector<Peer> peers);

  /// Something came from peer `index`, which had entered that many calls.
  void heard(std::size_t index);
  void heard(std::size_t index, std::uint64_t entered);

  /// Peer `index` has said goodbye, or its connection is gone.
  void departed(std::size_t index);
  bool has_departed(std::size_t index) const { return places_[index].departed; }

  /// A watch began: the indices of all who are to be asked now.
  std::vector<std::size_t> begin();

  /// The last watch ended: forget what was asked.
  void end();

  /// `passed` more of a tick has gone by; at most `tick` of it counts. Returns who is to be asked.
  /// Of very many peers only some are asked each time, in turn.
  std::vector<std::size_t> tick(Milliseconds passed, Milliseconds tick);

  /// Who has not answered for its patience while `what` waited.
  std::optional<Error> silent(const std::string& what) const;

  /// Who has left before it entered call number `entered`, which `what` is.
  std::optional<Error> missing(std::uint64_t entered, const std::string& what) const;

  /// Who answers, but has not entered that call after `waited`: those that are furthest behind. The
  /// others may wait for them in a call before. Where nobody is behind, that nothing moves.
  std::optional<Error> late(std::uint64_t entered, Milliseconds waited,
                            const std::string& what) const;

 private:
  static constexpr std::size_t kAskedAtOnce = 16;

  struct Place {
    Peer peer;
    std::uint64_t entered = 0;
    bool departed = false;
    bool asked = false;       // and has not answered yet
    Milliseconds silence{0};  // since it was asked
  };

  std::string name_of(const Place& place) const;
  void ask(std::size_t index, std::vector<std::size_t>& asked);

  std::string self_;
  Milliseconds timeout_;
  std::vector<Place> places_;
  std::size_t turn_ = 0;
};

}  // namespace muster::collective
