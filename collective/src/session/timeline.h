// The timeline of a rank's operations in Chrome's trace format (chrome://tracing, Perfetto): a lane
// for each name. The phases have Horovod's names where Horovod has such a phase:
//
//   NEGOTIATE_ALLREDUCE  from the hand-over until all ranks agreed (with the rank that came last)
//   ALLREDUCE            from then until the end, with the two phases below in it
//     QUEUE              until the turn of the operation came
//     EXECUTE            while it was carried out (with the number of the call: equal numbers were
//                        carried out together)
//   CYCLE_START          a mark where operations begin together, if asked for
//
// Horovod's MEMCPY_IN_FUSION_BUFFER and MEMCPY_OUT_FUSION_BUFFER have no counterpart: tensors are
// reduced where they are.
//
// The file begins with '[' and grows by whole events, so it can be read at any time: the format
// allows that the ']' is missing, as it will be where the process is killed.
//
// Times are those of the system's monotonic clock, so the files of all ranks of a host fit
// together.
//
// Thread-safety: add() from any thread. A thread of its own writes; it sleeps while there is
// nothing.
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
#include "transport/deadline.h"
#include "transport/descriptor.h"

namespace muster::collective::session {

struct TimelineEvent {
  std::string_view name;
  std::string_view operation;
  std::uint64_t bytes = 0;
  std::uint64_t call = 0;  // 0: was not carried out
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

  /// Closes the list, so that it is a whole document.
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  void add(const TimelineEvent& event);

  /// Operations begin together at this time.
  void mark_cycle(Deadline begun);

  /// Writes what there is and closes the file. Errors: kSystem, also of all writes before.
  Status close();

 private:
  Timeline(Descriptor file, int rank);
  void append(std::string_view event);
  void phase(std::string_view what, int lane, Deadline begin, Deadline end,
             const std::string& arguments);
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
