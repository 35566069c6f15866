// Turns a task's log frames into lines, and lines that Open MPI tagged into lines of their ranks.
//
// Pure. One LineSplitter a task; frames in order.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "engine/log_frame.h"
#include "job/log_record.h"

namespace muster::control {

/// A line without its newline is cut into records of this size, so that a gigabyte without a
/// newline costs no more memory than this.
inline constexpr size_t kLongestPiece = 64 << 10;

/// What `mpirun --tag-output` puts before a line: "[1,0]<stdout>:text".
struct RankTag {
  int rank = 0;
  job::LogStream stream = job::LogStream::kOutput;
  size_t length = 0;  ///< how many bytes of the line are the tag
};

std::optional<RankTag> rank_tag_of(std::string_view line);

class LineSplitter {
 public:
  using Emit = std::function<void(job::LogRecord)>;

  /// `tagged`: lines may carry rank tags (the launcher of an MPI job).
  LineSplitter(std::string task, std::string host, bool tagged);

  void add(const engine::LogFrame& frame, const Emit& emit);

  /// Hands over what stands without a newline yet: as whole lines when `last`, else as the
  /// beginnings of lines that go on.
  void flush(bool last, const Emit& emit);

  bool has_partial() const;

 private:
  struct Line {
    std::string text;
    base::Time time;
    bool begun = false;       ///< a piece of it went out already
    std::optional<int> rank;  ///< of the piece that went out
    job::LogStream stream = job::LogStream::kOutput;
  };

  void emit_piece(Line& line, job::LogStream stream, bool continues, const Emit& emit) const;

  std::string task_;
  std::string host_;
  bool tagged_;
  std::array<Line, 3> lines_;  ///< by stream: each has its own unfinished line
};

}  // namespace muster::control
