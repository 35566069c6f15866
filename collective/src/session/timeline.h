// The timeline of a rank's operations in Chrome's trace format (chrome://tracing, Perfetto): a lane
// for each name. The phases have Horovod's names where Horovod has such a phase:
//
//   NEGOTIATE_ALLREDUCE  from the hand-over to the agreement of all ranks (with the last rank)
//   ALLREDUCE            from then until the end, with the two phases below in it
//     QUEUE              until the operation's turn
//     EXECUTE            its execution (with the number of the call: operations with equal numbers
//                        were executed together)
//   CYCLE_START          a mark where operations begin together, if enabled
//   SLOW_RANK, SLOW_LINK on rank 0: a mark at the end of a window that stragglers.h judges so
//
// Horovod's MEMCPY_IN_FUSION_BUFFER and MEMCPY_OUT_FUSION_BUFFER have no counterpart: tensors are
// reduced where they are.
//
// The file begins with '[' and grows by whole events, so that it can be read at any time: the
// format allows a missing ']', which a killed process leaves.
//
// Times are those of the system's monotonic clock, so the files of all ranks of a host are
// comparable.
//
// Thread-safety: add() from any thread. A separate thread writes, and sleeps while there are no
// events.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "muster/collective/result.h"
#include "transport/socket.h"

namespace muster::collective::session {

struct TimelineEvent {
  std::string_view name;
  std::string_view operation;
  std::uint64_t bytes = 0;
  std::uint64_t call = 0;  // 0: was not executed
  int last_rank = 0;
  bool failed = false;
  Deadline handed_over;
  Deadline agreed;
  Deadline begun;
  Deadline ended;
};

class Timeline {
 public:
  /// "%r" in `path` becomes the rank. Errors: kSystem.
  static Result<std::unique_ptr<Timeline>> open(const std::string& path, int rank,
                                                const std::string& host);

  /// Closes the list, so that the file is a complete document.
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  void add(const TimelineEvent& event);

  /// Operations begin together at this time.
  void mark_cycle(Deadline begun);

  /// A mark at `now`, with a sentence.
  void mark(std::string_view what, std::string_view sentence, Deadline now);

  /// Writes the remaining events and closes the file. Errors: kSystem, also of earlier writes.
  Status close();

 private:
  Timeline(Descriptor file, int rank);
  void append(std::string_view event);
  void phase(std::string_view what, int lane, Deadline begin, Deadline end,
             const std::string& arguments);
  void append_mark(std::string_view what, Deadline at, const std::string& arguments);
  int lane_of(std::string_view name);
  void write_all(std::string_view text);
  void serve();

  Descriptor file_;
  int rank_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string pending_;
  std::unordered_map<std::string, int> lanes_;
  bool is_first_ = true;
  bool closing_ = false;
  int error_ = 0;
  std::thread writer_;
};

}  // namespace muster::collective::session
