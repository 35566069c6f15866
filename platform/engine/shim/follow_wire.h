// What a task whose folder is elsewhere tells of itself: `muster-shim --follow FOLDER` writes it to
// its standard output, from the offsets that it is given on, and goes on until the task has ended
// and everything was told, or nobody reads there any more; where its standard input is a pipe or a
// socket, the end of that ends it, too. The server keeps a copy of the folder from it
// (engine/folder/mirror.h).
//
// All but the log and the metrics is told anew to each that follows: whoever was here before hears
// once more that the task runs, or of a rank. METRICS_OFFSET is for whoever has lost a connection:
// a file of metrics that was written anew meanwhile (metric_log.h) is told from the one before by
// its length alone, so whoever comes back after long better asks from 0.
//
// Each record is a frame (base/frame.h), whose tag is the FollowKind. Its bytes begin with eight
// that state where in the file the others belong, little endian: 0 where the kind has no file.
//
// Whoever follows for the first time may do so by the standard output of the container's process 1,
// which is the same stream from offset 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/frame.h"

namespace muster::engine {

inline constexpr size_t kMaxFollowRecord = 64 << 10;
inline constexpr size_t kFollowOffset = 8;

enum class FollowKind : uint8_t {
  kRunning = 'r',  ///< the RunningRecord: its programs may be started from now on
  kRefused = 'x',  ///< it could not be started: "CODE\nWHAT" (base::error_code_of); the last record
  kAnswered = 'a',  ///< its remote shell's port greets
  kMpi = 'm',       ///< what mpirun said it is; before kRunning
  kRank = 'k',      ///< "RANK SIZE": a rank has signed in
  kLog = 'l',  ///< bytes of the log, at their offset: whole frames, but a stream may end in one
  /// The log's front was cut: the content of log.start. What stood before it and was not told by
  /// now never is: the next kLog then begins at that offset.
  kLogStart = 's',
  kMetrics = 't',  ///< bytes of the metrics file, at their offset; at 0: the file begins anew
  kExit = 'e',     ///< the ExitRecord; everything else was told before. The last record
};

struct FollowRecord {
  FollowKind kind = FollowKind::kLog;
  uint64_t offset = 0;
  std::string bytes;

  bool operator==(const FollowRecord&) const = default;
};

/// REQUIRES: bytes.size() <= kMaxFollowRecord.
std::string encode(const FollowRecord& record);

/// Cuts a stream that comes in pieces into records.
///
/// Not thread-safe.
class FollowReader {
 public:
  void add(std::string_view bytes) { frames_.add(bytes); }
  /// The next whole record; nullopt: more has to come. A stream that is none ends for good: see
  /// is_broken().
  std::optional<FollowRecord> next();
  bool is_broken() const { return broken_; }
  size_t waiting() const { return frames_.waiting(); }  ///< bytes that are no whole record yet
  size_t kept() const { return frames_.kept(); }        ///< in memory, with what was handed out

 private:
  base::FrameReader frames_{kFollowOffset + kMaxFollowRecord};
  bool broken_ = false;
};

}  // namespace muster::engine
