// What becomes of the reports of a task's program: they are checked, held against their bounds, and
// written among the task's metrics. Whatever is wrong with them, the program is not told and the
// task goes on; the log says it, once.
//
// Bounds: kMostReports a second, of which those beyond wait for the second to end, and then only
// the newest of them are kept; kMostNames of metrics.
//
// Not thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "engine/shim/metric_writer.h"

namespace muster::engine {

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

}  // namespace muster::engine
