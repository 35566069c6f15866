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
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace muster::engine {

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

}  // namespace muster::engine
