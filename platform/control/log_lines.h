// Turns a task's log frames into lines.
//
// Pure. One LineSplitter a task; frames in order.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "engine/log_frame.h"
#include "job/log_record.h"

namespace muster::control {

/// A line without its newline is cut into records of this size, so that a gigabyte without a
/// newline costs no more memory than this.
inline constexpr size_t kLongestPiece = 64 << 10;

class LineSplitter {
 public:
  using Emit = std::function<void(job::LogRecord)>;

  LineSplitter(std::string task, std::string host, int attempt = 0);

  /// `at`: where the frame begins in the log.
  void add(const engine::LogFrame& frame, const Emit& emit, uint64_t at = 0);

  /// Hands over what stands without a newline yet: as whole lines when `last`, else as the
  /// beginnings of lines that go on.
  void flush(bool last, const Emit& emit);

  /// The same for what stands in frames before `at` alone.
  void flush_before(uint64_t at, const Emit& emit);

  bool has_partial() const;

  /// Each rank of a task, and each of its streams, has an unfinished line of its own.
  using Source = std::pair<std::optional<int>, job::LogStream>;

  struct Line {
    std::string text;
    base::Time time;
    uint64_t at = 0;     ///< the frame in which `text` begins
    bool begun = false;  ///< a piece of it went out already
  };

  /// The lines that are not finished, those that a piece went out of included.
  std::map<Source, Line> unfinished() const;
  void restore(const Source& source, Line line) { lines_[source] = std::move(line); }

 private:
  void emit_piece(const Source& source, Line& line, bool continues, const Emit& emit) const;

  std::string task_;
  std::string host_;
  int attempt_;
  std::map<Source, Line> lines_;
};

}  // namespace muster::control
