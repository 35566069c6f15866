// How far a job's logs have been read, so that reading can go on where it broke off when the server
// was killed: no byte lost, none shown twice.
//
// The server says now and then which place was reached; from there on it is asked to go on. What
// came after the last place comes again, cut into records as it may be: the bytes of each source (a
// stream of a rank of a task in an attempt) come in the same order each time, so they are counted,
// and as many are passed over.
//
// Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "job/log_record.h"

namespace muster::cli {

class LogCursor {
 public:
  /// What of `record` was not seen before the last restart(): all of it, or its rest, which lives
  /// until the next call; nullptr: nothing.
  const job::LogRecord* unseen(const job::LogRecord& record);

  /// All that came before stands in front of `place`.
  void reach(const std::string& place);

  /// Reading begins anew at place(). From then on unseen() passes over what was seen.
  void restart();

  /// The last that was reached; empty: the beginning.
  const std::string& place() const { return place_; }

 private:
  using Source = std::tuple<int, std::string, std::optional<int>, job::LogStream>;
  struct Count {
    uint64_t seen = 0;   ///< bytes since the last place
    uint64_t again = 0;  ///< of these, how many are yet to come again
  };

  using Counts = std::map<Source, Count>;
  Count& count_of(const job::LogRecord& record);

  Counts counts_;
  Counts::value_type* last_ = nullptr;  ///< whoever prints much is met again soon
  std::string place_;
  job::LogRecord rest_;
};

}  // namespace muster::cli
