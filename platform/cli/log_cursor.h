// How far a job's logs have been read, so that reading can go on where it broke off when the server
// was killed: nothing lost, nothing shown twice.
//
// Records of one task come in the order of their times; those of different tasks need not. So the
// place is kept for each task: the time of its last record, and how many records had that time.
//
// Pure.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "job/log_record.h"

namespace muster::cli {

class LogCursor {
 public:
  /// Whether `record` was not handed over before the last resume(); if so, counts it as seen.
  bool advance(const job::LogRecord& record);

  /// The query that reads on, given the one that began. From then on advance() passes over what
  /// was seen.
  job::LogQuery resume(job::LogQuery query);

 private:
  struct Place {
    base::Time last;
    int at_last = 0;         ///< records seen with that time
    int to_skip = 0;         ///< of those, how many will come again
    bool replaying = false;  ///< what was seen comes again
  };

  std::map<std::string, Place> places_;
  std::optional<base::Time> first_;
};

}  // namespace muster::cli
