// What several sources printed, as it is handed from reader to reader: runs of bytes, one behind
// the other in one piece of memory. A record for each line would cost more than the line.
//
// Pure. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "job/log_record.h"

namespace muster::job {

/// Who printed: a stream of a rank of a task in an attempt. The fields are LogRecord's.
struct LogSource {
  std::string task;
  int attempt = 0;
  std::string host;
  std::optional<int> rank;
  LogStream stream = LogStream::kOutput;

  bool operator==(const LogSource&) const = default;
};

/// A run is of one source and one time. It is either whole lines, each with its newline, or a piece
/// of one line, without one, that the next run of this source goes on with.
class LogBatch {
 public:
  using Source = std::shared_ptr<const LogSource>;

  struct Run {
    size_t source = 0;  ///< in sources()
    base::Time time;
    size_t size = 0;
  };

  void add(const Source& source, base::Time time, std::string_view bytes);
  void clear();

  bool empty() const { return runs_.empty(); }
  const std::vector<Source>& sources() const { return sources_; }
  const std::vector<Run>& runs() const { return runs_; }
  const std::string& bytes() const { return bytes_; }  ///< of all runs

 private:
  size_t index_of(const Source& source);

  std::vector<Source> sources_;
  std::vector<Run> runs_;
  std::string bytes_;
};

/// A record with the source's fields, to be given the text of its lines.
LogRecord record_of(const LogSource& source);

/// Hands over a run's lines, each as a record that is valid during the call: `record` with its text
/// and whether it goes on. Returns false once `take` has, which then is handed no more.
template <class Take>
bool for_each_line(std::string_view run, LogRecord& record, Take&& take) {
  while (!run.empty()) {
    const size_t newline = run.find('\n');
    record.text.assign(run.substr(0, newline));
    record.continues = newline == std::string_view::npos;
    if (!take(record)) return false;
    if (record.continues) break;
    run.remove_prefix(newline + 1);
  }
  return true;
}

std::vector<LogRecord> records_of(const LogBatch& batch);

}  // namespace muster::job
