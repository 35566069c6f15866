// The ranks in what a launcher prints: where its lines begin with a tag that says which rank
// printed them, the tag is taken off and the bytes are that rank's.
//
//   [1,3]<stdout>:text        Open MPI, mpirun --tag-output (from 5.0 on with a blank behind it)
//   [3]<stderr>:text          horovodrun
//   [3] text                  MPICH and Intel MPI, mpiexec -l: only where that was asked for, since
//                             programs begin lines so, too
//
// A tag of the first two forms may also stand within a line that began with one: of a rank that
// prints a line in pieces, mpirun tags each piece.
//
// Pure. One for each stream of a task.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "job/log_record.h"

namespace muster::engine {

class RankTags {
 public:
  /// Bytes of one rank, or of none; never empty.
  using Emit =
      std::function<void(std::optional<int> rank, job::LogStream stream, std::string_view bytes)>;

  /// `stream`: of what has no tag. `bare`: lines are known to begin with "[3] ".
  RankTags(job::LogStream stream, bool bare) : stream_(stream), bare_(bare), line_stream_(stream) {}

  /// What may be the beginning of a tag is held back until it is seen whether it is.
  void add(std::string_view bytes, const Emit& emit);

  /// Nothing more comes.
  void finish(const Emit& emit);

 private:
  struct Tag {
    int rank = 0;
    job::LogStream stream = job::LogStream::kOutput;
    size_t size = 0;
    bool bare = false;
  };
  enum class Found { kTag, kNone, kUndecided };

  Found read_tag(std::string_view text, Tag& tag) const;
  size_t size_of(const Tag& tag, std::string_view text);
  size_t plain_bytes(std::string_view text) const;
  void take(std::string_view bytes, const Emit& emit);

  job::LogStream stream_;
  bool bare_;
  std::string held_;
  std::optional<int> rank_;     ///< of the present line
  job::LogStream line_stream_;  ///< and its stream
  bool at_start_ = true;        ///< of a line
  bool in_tagged_ = false;      ///< in a line that began with a tag of the longer forms
  bool blank_behind_ = true;    ///< every tag so far had one
};

}  // namespace muster::engine
