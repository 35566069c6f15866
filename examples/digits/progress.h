// How a training is shown. For people: a line an epoch on standard output, and within an epoch, on
// a terminal only, a bar on standard error that the line replaces. For programs (--output json): an
// object a line on standard output, one an epoch and one at the end.
//
// Thread-safety: one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "training.h"

namespace muster::digits {

enum class Output { kText, kJson };

/// The object of an epoch, without a newline: epoch, seconds, images, images_per_second, loss,
/// train_accuracy, test_accuracy. A number that JSON has not (a loss of infinity) is null.
std::string epoch_json(const EpochReport& report);

/// The object at the end: test_accuracy, images_per_second, weights_checksum.
std::string outcome_json(const Outcome& outcome);

class Progress {
 public:
  /// `epochs` of the whole training.
  Progress(int epochs, Output output);

  void show_step(int epoch, std::size_t step, std::size_t steps);
  void show_epoch(const EpochReport& report);

  /// `holders`: who has these weights, as in "on all 2 ranks".
  void show_outcome(const Outcome& outcome, std::string_view holders);

 private:
  void wipe_bar();

  int epochs_;
  Output output_;
  bool on_terminal_;
  bool bar_is_shown_ = false;
  std::chrono::steady_clock::time_point next_bar_ = {};
};

}  // namespace muster::digits
