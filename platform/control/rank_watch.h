// The facts that the server learns about an MPI program while it runs: which MPI it uses, and where
// its ranks are. A census that contradicts the request fails the job.
//
// On the EventLoop's thread.
#pragma once

#include <functional>

#include "control/attempt_services.h"
#include "control/census.h"

namespace muster::control {

class RankWatch {
 public:
  /// `fail` is called with a certain fault.
  RankWatch(AttemptContext context, std::function<bool()> is_ending,
            std::function<void(job::Failure)> fail)
      : context_(std::move(context)), is_ending_(std::move(is_ending)), fail_(std::move(fail)) {}

  /// Stores which MPI the leader's mpirun reported before the program began.
  void learn_mpi();
  /// The census has changed.
  void ranks_changed();
  /// The fault of a job whose launcher succeeded.
  std::optional<job::Failure> fault_at_end() const;

 private:
  void judge();

  AttemptContext context_;
  std::function<bool()> is_ending_;
  std::function<void(job::Failure)> fail_;
  bool judging_ = false;  ///< judge() is called in a later turn of the loop
  bool judged_ = false;   ///< the verdict on the start is final
};

}  // namespace muster::control
