// The metrics of one task: samples of what the task uses, and the reports of its program, which
// arrive on a socket or as printed lines. A failure here never touches the task.
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

namespace muster::engine {

// --- the file
//
// Appends to a task's metrics (metric_log.h), and never stands in the task's way: what a full disk
// does not take is lost, and no other line with it.
//
// One writer a file; not thread-safe.

/// `log` with fewer lines, at most `most` bytes of them. Of what is older than a minute before
/// `now`, lines of one kind (one rank and the same names) that stand too close in time are left
/// out: however often that is done, all of the past is there, equally dense. The newest of each
/// kind stays. Where that is not enough, the last minute is thinned, too, and in the end the oldest
/// lines go.
///
/// Pure.
std::string thinned_log(std::string_view log, base::Time now, size_t most);

class MetricWriter {
 public:
  /// Made with the first sample, for its owner alone. `most`: bytes that the file never exceeds.
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
// What becomes of the reports of a task's program: they are checked, held against their bounds, and
// written among the task's metrics. Whatever is wrong with them, the program is not told and the
// task goes on; the log says it, once.
//
// Bounds: kMostReports a second, of which those beyond wait for the second to end, and then only
// the newest of them are kept; kMostNames of metrics.
//
// Not thread-safe.

inline constexpr size_t kMostReports = 100;
inline constexpr size_t kMostNames = 200;
/// A longer report is none.
inline constexpr size_t kLongestReport = 4096;

class MetricIntake {
 public:
  /// `notice` puts a line of Muster's own into the task's log.
  MetricIntake(MetricWriter& writer, std::function<void(std::string)> notice);

  /// A report, as engine::reported_sample() reads it. `rank`: whose it is where it does not say so.
  void take(std::string_view text, std::optional<int> rank, base::Time now);

  /// When write_waiting() has something to do.
  std::optional<base::Time> due() const;
  void write_waiting(base::Time now);

  /// The last of them. Says how many were left out, if any.
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
  void say_once(const std::string& topic, const std::string& text);

  MetricWriter& writer_;
  std::function<void(std::string)> notice_;
  base::Time second_{};  ///< when the second began that reports are counted in
  size_t written_ = 0;   ///< in this second
  std::deque<Report> waiting_;
  uint64_t left_out_ = 0;
  std::set<std::string, std::less<>> names_;
  std::set<std::string> said_;
};

// --- reports in printed lines
//
// Finds, in what a program prints, the lines that report metrics:
//
//   ::metrics epoch=3 epochs=10 loss=0.183
//
// The marker stands at the beginning of its line, or behind the tag that a launcher puts there:
// "[1,0]<stdout>:" (mpirun --tag-output), "[3] " (Intel MPI, MPICH), "[rank3]:", "3: " (srun -l).
//
// Costs next to nothing where there are none: a search of what was read anyway, and a copy of the
// line that it ends in.
//
// Not thread-safe.

inline constexpr std::string_view kMetricMarker = "::metrics ";

/// A report that was printed, without its marker, and the rank that its tag names.
struct PrintedReport {
  std::string_view text;
  std::optional<int> rank;

  bool operator==(const PrintedReport&) const = default;
};

/// What a whole line reports, if it does.
std::optional<PrintedReport> report_in_line(std::string_view line);

/// The lines of one stream. They may come in any pieces; longer ones than kLongestReport are none.
class MetricLines {
 public:
  using Found = std::function<void(const PrintedReport&)>;

  void look_at(std::string_view bytes, const Found& found);
  /// The stream has ended: its last line may lack an end.
  void end(const Found& found);

 private:
  void begin_line(std::string_view piece);
  void continue_line(std::string_view piece);

  std::string line_;       ///< what there is of the last one
  bool too_long_ = false;  ///< the last one, to be a report
};

// --- all of a task's metrics
//
// The metrics of one task, as the shim's outer half gathers them: what is sampled of the task, and
// what its program reports, by the socket "metrics" in its generated folder or by the lines that it
// prints. Whatever goes wrong with them, the task is not touched.
//
// Owned and called by one thread, the one that polls: watch() before, serve() after.

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
