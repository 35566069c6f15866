// Lines that repeat themselves, shown once and counted: those of one source, and the same line of
// several ranks or tasks, one behind the other.
//
//   [0@dist-worker-0] WARNING: no cache
//   [0-7] ... (repeated 41 times)
//
// The first is printed at once; the count when something else comes, or when tell() is called.
//
// Pure. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "cli/log_printer.h"
#include "job/log_record.h"

namespace muster::cli {

class LogFold {
 public:
  /// `printer` outlives it.
  explicit LogFold(LogPrinter& printer) : printer_(printer) {}

  void print(const job::LogRecord& record, std::string& out);

  /// Prints how often the last line was repeated, if it was; later repetitions count anew.
  void tell(std::string& out);

  /// Whether there is something to tell.
  bool holds() const { return count_ > 0; }

 private:
  bool repeats_the_last(const job::LogRecord& record) const;
  std::string names() const;

  LogPrinter& printer_;
  std::optional<job::LogRecord> last_;  ///< a whole line that may be repeated
  job::LogRecord repeated_;             ///< the last repetition
  bool continues_ = false;              ///< the last record is not the end of its line
  uint64_t count_ = 0;                  ///< repetitions since it was shown or told
  std::set<int> ranks_;                 ///< that printed it, and the tasks of those without a rank
  std::set<std::string> tasks_;
};

}  // namespace muster::cli
