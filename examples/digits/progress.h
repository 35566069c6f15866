// How the training is shown: a line an epoch on standard output, and within an epoch, on a terminal
// only, a bar on standard error that the line replaces.
//
// Thread-safety: one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>

#include "trainer.h"

namespace muster::digits {

class Progress {
 public:
  /// `epochs` of the whole training.
  explicit Progress(int epochs);

  void show_step(int epoch, std::size_t step, std::size_t steps);
  void show_epoch(const EpochReport& report);

 private:
  void wipe_bar();

  int epochs_;
  bool on_terminal_;
  bool bar_is_shown_ = false;
  std::chrono::steady_clock::time_point next_bar_ = {};
};

}  // namespace muster::digits
