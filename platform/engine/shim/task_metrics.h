// The metrics of one task, as the shim's outer half gathers them: what is sampled of the task, and
// what its program reports, by the socket "metrics" in its generated folder or by the lines that it
// prints. Whatever goes wrong with them, the task is not touched.
//
// Owned and called by one thread, the one that polls: watch() before, serve() after.
#pragma once

#include <poll.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/subprocess.h"
#include "base/unique_fd.h"
#include "engine/shim/metric_intake.h"
#include "engine/shim/metric_lines.h"
#include "engine/shim/metric_writer.h"
#include "engine/shim/plan.h"

namespace muster::engine {

class TaskMetrics {
 public:
  using Steady = std::chrono::steady_clock;

  /// `notice` puts a line of Muster's own into the task's log. `clock` must outlive this.
  /// `generated`: the folder in which programs find the socket.
  TaskMetrics(const TaskFolder& folder, std::filesystem::path generated, SamplingPlan plan,
              const base::Clock& clock, std::function<void(std::string)> notice);

  /// The task starts: its program can report from now on.
  void start();

  /// Appends what is to be polled.
  void watch(std::vector<pollfd>& polled) const;
  /// How long poll(2) may wait at most; -1: until something comes.
  int milliseconds_to_wait() const;
  /// What watch() appended, polled; and what is due.
  void serve(std::span<const pollfd> polled);

  /// What was printed, `lines` being those of its stream; `rank`: of the stream, where it is one's.
  void printed(MetricLines& lines, std::string_view bytes, std::optional<int> rank);
  void printing_ended(MetricLines& lines, std::optional<int> rank);

  /// The process that measures; -1: there is none.
  pid_t sampler() const { return sampler_.pid; }

  /// Nothing of the task is left to be measured.
  void stop_sampling();
  /// Writes down what still waits.
  void finish();

 private:
  void start_sampler();
  bool start_sampler(const std::string& program, std::vector<std::string> argv);
  void read_samples();
  void read_reports();

  std::filesystem::path generated_;
  SamplingPlan plan_;
  const base::Clock& clock_;
  MetricWriter writer_;
  MetricIntake intake_;
  base::UniqueFd reports_;
  base::Child sampler_;
  base::UniqueFd samples_;
  Steady::time_point started_;
  std::optional<Steady::time_point> sampling_starts_;
  bool measures_gpus_;  ///< until what measures them has failed
  bool has_sampled_ = false;
};

}  // namespace muster::engine
