// The lines of an experiment's log that a table shows.
//
// Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/logs/log_printer.h"
#include "job/log_record.h"

namespace muster::dialects::gradient {

/// The first line has the number 1.
struct LogSpan {
  int64_t first = 0;  ///< 0 and 1: from the beginning
  int64_t most = 0;
};

class LogLines {
 public:
  LogLines(LogSpan span, cli::logs::LogLook look) : span_(span), printer_(look, {}) {}

  /// Adds a record in the format of `muster logs`. False: no more records are needed.
  bool add(const job::LogRecord& record);

  /// The lines with their numbers.
  std::vector<std::pair<int64_t, std::string>> finish();

 private:
  void take_whole_lines();
  bool is_full() const { return static_cast<int64_t>(lines_.size()) >= span_.most; }

  LogSpan span_;
  cli::logs::LogPrinter printer_;
  std::string text_;    ///< of the incomplete line
  int64_t number_ = 0;  ///< of the last complete line
  std::vector<std::pair<int64_t, std::string>> lines_;
};

}  // namespace muster::dialects::gradient
