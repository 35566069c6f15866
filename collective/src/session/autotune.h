// Finds out how much should be carried out together: it lets the session run with one setting after
// the other, for as many steps each, and keeps the one that moved most bytes a second.
//
// A step begins whenever the name comes again that was the first to come twice. Only rank 0 tunes,
// for only rank 0 cuts batches.
//
// Pure: time comes in as an argument, the log goes out as text. Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "session/protocol.h"
#include "transport/deadline.h"

namespace muster::collective::session {

class Autotune {
 public:
  /// Every candidate runs one step to warm up and `steps` that count, `rounds` times in turn, for
  /// what else goes on in a machine should not hit one candidate alone. The best median wins.
  explicit Autotune(std::vector<std::uint64_t> fusion_bytes, int steps = 5, int rounds = 3);

  std::uint64_t current() const { return candidates_[at_].fusion_bytes; }
  bool is_done() const { return done_; }

  /// A batch has been cut, of so many bytes. True where current() has changed.
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
