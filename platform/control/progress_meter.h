// How far a program is, by what it reports: "epoch=3 epochs=10", "step=200 steps=5000", or
// "progress=0.4". The first number is what is done: epoch=3 says that three epochs are behind it.
//
// Totals are remembered, so that a program may tell them once. Of a program that tells several, its
// epochs count before its steps, and these before a part of 1. Of several ranks the lowest counts;
// of several tasks that name none, the one that reported last.
//
// Pure values, no locks.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "engine/metric_log.h"
#include "job/metric.h"

namespace muster::control {

/// Of one program: a task, or one rank in it.
class ProgressMeter {
 public:
  void take(const engine::MetricSample& sample);

  /// `ends` by the pace between the first report and the newest. A value that went back begins
  /// anew: the pace of what was before says nothing about what follows.
  std::optional<job::Progress> progress() const;

  /// Of the newest report of how far it is.
  base::Time newest() const { return newest_; }

 private:
  struct Unit {
    std::optional<double> total;
    std::optional<job::MetricPoint> first;  ///< since it last went back
    job::MetricPoint last;
  };
  void note(Unit& unit, job::MetricPoint report);

  std::array<Unit, 3> units_;  ///< epochs, steps, a part of 1
  base::Time newest_;
};

/// Of all programs of a job. Its tasks are numbered as the job has them.
class JobProgress {
 public:
  void take(size_t task, const engine::MetricSample& sample);
  /// Forgets what a task has reported: it comes again.
  void forget(size_t task);

  std::optional<job::Progress> progress() const;

 private:
  // Whoever counts up ranks without end gets no more memory for it: the lowest is what is shown.
  static constexpr size_t kMostPrograms = 1024;

  std::map<std::pair<int, size_t>, ProgressMeter> meters_;  ///< by rank and task
};

}  // namespace muster::control
