// The metrics of one task: samples of what the task uses (sampler.h), and reports of its program. A
// program reports on the socket "metrics" in the generated folder, or by printing lines. All
// metrics go into the file "metrics" (metric_log.h). A failure here never affects the task.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/subprocess.h"
#include "base/unique_fd.h"
#include "engine/metric_log.h"
#include "engine/shim/plan.h"
#include "engine/shim/sampler.h"

namespace muster::engine {

// --- the file
//

/// `log` with fewer lines: at most `most` bytes. Lines of one kind (the same rank and names) that
/// are too close in time are removed from the part older than a minute before `now`. The newest
/// line of each kind stays. After any number of calls, the lines still cover the whole past evenly.
/// If the result is too long, the last minute is thinned, too, and then the oldest lines are
/// removed.
///
/// Pure.
std::string thinned_log(std::string_view log, base::Time now, size_t most);

/// Appends samples to the file. Never blocks the task: a line that does not fit on a full disk is
/// lost, and the lines before and after it stay whole.
///
/// One writer a file; not thread-safe.
class MetricWriter {
 public:
  /// The file is created with the first sample, with mode 0600. `most`: limit of its size in bytes.
  explicit MetricWriter(std::filesystem::path file, int64_t most = kMaxMetricLog);

  void write(const MetricSample& sample);

 private:
  bool is_open();
  bool thin(base::Time now);

  std::filesystem::path path_;
  int64_t most_;
  base::UniqueFd file_;
  int64_t size_ = 0;  ///< end of the last whole line
};

// --- reports
//

inline constexpr size_t kMostReports = 100;     ///< each second
inline constexpr size_t kMostNames = 200;       ///< of metrics, in one task
inline constexpr size_t kLongestReport = 4096;  ///< bytes; a longer report is ignored

/// Takes the reports of a task's program: checks them, holds them to the bounds above, and writes
/// them to the task's metrics. The program gets no answer. The first report of each fault leads to
/// a notice in the task's log.
///
/// Of more than kMostReports in a second, the newest are kept until the next second.
///
/// Not thread-safe.
class MetricIntake {
 public:
  /// `notice`: writes a line of Muster's own to the task's log.
  MetricIntake(MetricWriter& writer, std::function<void(std::string)> notice);

  /// Takes a report in the format of engine::reported_sample(). `rank`: the rank that it belongs to
  /// unless the report names one.
  void take(std::string_view text, std::optional<int> rank, base::Time now);

  /// When write_waiting() must be called; nullopt: no report waits.
  std::optional<base::Time> due() const;
  void write_waiting(base::Time now);

  /// The task has ended: writes the waiting reports, and a notice if some were left out.
  void finish(base::Time now);

 private:
  struct Report {
    std::string text;
    std::optional<int> rank;
    base::Time time;
  };

  void begin_second(base::Time now);
  void write(std::string_view text, std::optional<int> rank, base::Time time);
  bool may_have(const std::string& name);
  void notice_once(const std::string& topic, const std::string& text);

  MetricWriter& writer_;
  std::function<void(std::string)> notice_;
  base::Time second_{};  ///< beginning of the second for which `written_` counts
  size_t written_ = 0;   ///< reports written in this second
  std::deque<Report> waiting_;
  uint64_t left_out_ = 0;
  std::set<std::string, std::less<>> names_;
  std::set<std::string> noticed_;
};

// --- reports in printed lines
//
// A program can report metrics by printing lines such as
//
//   ::metrics epoch=3 epochs=10 loss=0.183
//
// The marker is at the beginning of the line, or after a tag of the launcher: "[1,0]<stdout>:"
// (mpirun --tag-output), "[3] " (Intel MPI, MPICH), "[rank3]:", "3: " (srun -l).

inline constexpr std::string_view kMetricMarker = "::metrics ";

/// A printed report without its marker, and the rank from the launcher's tag.
struct PrintedReport {
  std::string_view text;
  std::optional<int> rank;

  bool operator==(const PrintedReport&) const = default;
};

/// The report in a line; nullopt: the line is not a report.
std::optional<PrintedReport> report_in_line(std::string_view line);

/// Finds reports in one stream of output, which arrives in pieces. Output without reports costs
/// little: one search for the marker, and a copy of the line that a piece ends in.
///
/// Not thread-safe.
class MetricLines {
 public:
  using Found = std::function<void(const PrintedReport&)>;

  /// Takes the next piece; calls `found` for each report.
  void look_at(std::string_view bytes, const Found& found);
  /// The stream has ended; its last line may lack a line end.
  void end(const Found& found);

 private:
  void begin_line(std::string_view piece);
  void continue_line(std::string_view piece);

  std::string line_;       ///< the unfinished last line
  bool too_long_ = false;  ///< the unfinished last line is too long for a report
};

// --- all of a task's metrics
//

/// Collects the metrics of one task for the shim's outer half: takes samples (sampler.h), and the
/// reports of the task's program.
///
/// What may block is read by a child process, whose lines arrive through a pipe: muster-gpu-sampler for
/// a task with GPUs, otherwise a fork of this process that ends after one look.
///
/// Owned and called by the thread that polls: watch() before poll(2), serve() after.
class TaskMetrics {
 public:
  using Steady = std::chrono::steady_clock;

  /// `generated`: the folder in which programs find the socket. `clock` must outlive this.
  /// `notice`: writes a line of Muster's own to the task's log.
  TaskMetrics(const TaskFolder& folder, std::filesystem::path generated, SamplingPlan plan,
              const base::Clock& clock, std::function<void(std::string)> notice);

  /// Called before the task's program starts: creates the socket.
  void start();

  /// Appends the descriptors to poll.
  void watch(std::vector<pollfd>& polled) const;
  /// Timeout of poll(2); -1: no timeout.
  int milliseconds_to_wait() const;
  /// `polled`: the entries that watch() appended, after poll(2). Also does what is due.
  void serve(std::span<const pollfd> polled);

  /// Searches printed bytes for reports. `lines`: belongs to the stream that the bytes come from.
  /// `rank`: the rank whose stream it is, if it is the stream of a single rank.
  void printed(MetricLines& lines, std::string_view bytes, std::optional<int> rank);
  void printing_ended(MetricLines& lines, std::optional<int> rank);

  /// The process id of the child that measures the task, or -1 if there is no such child.
  pid_t sampler() const { return child_.pid; }

  /// The task has ended: ends that process.
  void stop_sampling();
  /// Writes the reports that still wait.
  void finish();

 private:
  void sample();
  bool start_gpu_sampler();
  void read_gpu_samples();
  void begin_sample();
  bool start_slow_look();
  void read_slow_look();
  void finish_sample(const std::optional<SlowLook>& slow);
  void end_child();
  void read_reports();

  std::filesystem::path generated_;
  SamplingPlan plan_;
  const base::Clock& clock_;
  MetricWriter writer_;
  MetricIntake intake_;
  base::UniqueFd reports_;
  base::Child child_;       ///< measures
  base::UniqueFd samples_;  ///< from child_
  std::string slow_look_;   ///< read from a child that has not ended
  Steady::time_point started_;
  std::optional<Sampler> sampler_;                     ///< set with the first sample without GPUs
  Steady::time_point sample_begun_;                    ///< of sampler_
  std::optional<Steady::time_point> sampling_starts_;  ///< the next sample, or start of the child
  bool measures_gpus_;                                 ///< false once muster-gpu-sampler has failed
  bool has_sampled_ = false;
};

}  // namespace muster::engine
