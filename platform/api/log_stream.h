// A job's log as a stream of frames, for Muster's own programs: it has the same places and the same
// end as the stream of events, without a JSON document for each line. GET /v1/jobs/NAME/logs
// returns it if `accept` contains kLogStreamType. docs/decisions/0017 gives the reasons. The frames
// are those of base/frame.h; the tag is the kind:
//
//        kBatch: the number of sources; of each its attempt, its rank plus one (0: none), its
//                stream, the length of its task's name and the name, the length of its host's name
//                and the name. Then runs, up to the end: number of the source, time since the run
//                before (since 1970 the first; nanoseconds, zigzag), length, bytes: whole lines,
//                each with its newline, or a piece of a line without a newline.
//        kPlace: the id of the place that was reached
//        kEnd:   the job, as JSON; the last frame
//        kPing:  nothing: the server lives
//
// Numbers are in LEB128: seven bits in each byte, lowest first, with the eighth bit set in all
// bytes but the last. Each frame is independent: the numbers of sources are valid only within it.
//
// Pure; not thread-safe.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/frame.h"
#include "base/result.h"
#include "job/log_record.h"

namespace muster::api {

inline constexpr std::string_view kLogStreamType = "application/vnd.muster.log-event-stream";

/// No kind equals the first byte of a stream of events.
enum class LogFrameKind : unsigned char { kBatch = 1, kPlace = 2, kEnd = 3, kPing = 4 };

/// The maximum size of a frame.
inline constexpr size_t kMostLogFrame = 64 << 20;

/// Appends nothing for an empty batch.
void append_log_batch(std::string& out, const job::LogBatch& batch);
/// REQUIRES: kind != kBatch.
void append_log_frame(std::string& out, LogFrameKind kind, std::string_view content = {});

/// Finds the frames in a stream that may be split anywhere.
class LogStreamDecoder {
 public:
  /// Valid during the call. A handler returns false to stop the decoder.
  struct Handlers {
    std::function<bool(const job::LogRecord&)> on_record;
    std::function<bool(std::string_view)> on_place;
    std::function<bool(std::string_view)> on_end;
  };

  explicit LogStreamDecoder(Handlers handlers) : handlers_(std::move(handlers)) {}

  /// Passes on the complete frames. False: a handler returned false. kInternal: not such a stream.
  base::Result<bool> put(std::string_view piece);

 private:
  base::Result<bool> take(const base::Frame& frame);
  base::Result<bool> take_batch(std::string_view content);

  Handlers handlers_;
  std::string partial_;                  ///< the beginning of an incomplete frame
  std::vector<job::LogRecord> records_;  ///< of the sources of the last batch
};

}  // namespace muster::api
