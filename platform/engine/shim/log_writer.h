// Appends to a task's log, and never stands in the task's way: when the disk is full, bytes are
// dropped and counted, and the log says so as soon as there is room again.
//
// One writer a log; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "job/log_record.h"

namespace muster::engine {

class LogWriter {
 public:
  /// `file`: open for writing, positioned at its end.
  LogWriter(base::UniqueFd file, const base::Clock& clock);

  /// Any number of bytes; written as one frame or more.
  void write(job::LogStream stream, std::string_view bytes, std::optional<int> rank = std::nullopt);

  /// A line of Muster's own.
  void notice(std::string_view text) { write(job::LogStream::kNotice, std::string(text) + "\n"); }

  /// Bytes that were dropped and that no line in the log speaks of yet.
  uint64_t lost() const { return lost_; }

 private:
  bool append(std::string_view frame);
  std::string loss_frame() const;
  bool reserve(size_t bytes);

  base::UniqueFd file_;
  const base::Clock& clock_;
  int64_t size_ = 0;  ///< end of the last whole frame
  uint64_t lost_ = 0;
};

}  // namespace muster::engine
