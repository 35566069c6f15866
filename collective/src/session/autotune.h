// Tunes the size of batches: runs the session with one setting after another, for the same number
// of steps each, and keeps the setting with the highest bytes per second.
//
// The first name that comes a second time marks the steps: a step begins each time it comes. Only
// rank 0 tunes, since only rank 0 makes batches.
//
// Pure: the time is an argument, the log is returned as text. Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "session/protocol.h"
#include "transport/socket.h"

namespace muster::collective::session {

class Autotune {
 public:
  /// Each candidate runs one step to warm up and `steps` measured steps. All candidates take turns,
  /// `rounds` times, so that other load of the machine does not affect one candidate alone. The
  /// best median wins.
  explicit Autotune(std::vector<std::uint64_t> fusion_bytes, int steps = 5, int rounds = 3);

  std::uint64_t current() const { return candidates_[at_].fusion_bytes; }
  bool is_done() const { return done_; }

  /// A batch of `bytes` was made. Returns whether current() has changed.
  bool on_batch(const Batch& batch, std::uint64_t bytes, Deadline now);

  /// "fusion_bytes,steps,bytes,seconds,bytes_per_second,chosen", and a line for each try since the
  /// last call; the last line is the choice.
  std::string take_log();

 private:
  struct Candidate {
    std::uint64_t fusion_bytes;
    std::vector<double> rates = {};
  };
  bool begins_step(const Batch& batch);
  void end_of_try(Deadline now);
  std::size_t best() const;

  std::vector<Candidate> candidates_;
  int steps_;
  int rounds_;
  std::size_t at_ = 0;
  int round_ = 0;
  int step_ = -1;                        // of this try; 0 is the warm-up
  std::optional<std::uint32_t> marker_;  // the name that begins a step
  std::uint64_t bytes_ = 0;
  Deadline begun_ = {};
  bool done_ = false;
  std::string log_ = "fusion_bytes,steps,bytes,seconds,bytes_per_second,chosen\n";
};

}  // namespace muster::collective::session
