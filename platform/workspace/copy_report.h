// The report of a copy between a task and this machine: entries that were left out, totals and
// errors. The program in the task prints it on standard error, a line each; the other end parses
// it.
//
//   skipped: '/data/socket' is a socket
//   failed: '/data/key' cannot be read: Permission denied
//   error: not_found: there is no '/data'
//   advice: see what there is: muster exec JOB -- ls /data
//
// Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace muster::workspace {

/// An entry that was not copied. The copy continues with the other entries.
struct CopyNote {
  enum class Kind {
    kSkipped,  ///< cannot be copied by its nature: a socket, a device
    kFailed,   ///< copying failed
  };
  Kind kind = Kind::kFailed;
  std::string text;  ///< without control characters

  bool operator==(const CopyNote&) const = default;
};
using OnCopyNote = std::function<void(const CopyNote&)>;

struct CopyTotals {
  size_t files = 0;  ///< including links
  int64_t bytes = 0;
  size_t failed = 0;

  bool operator==(const CopyTotals&) const = default;
};

std::string to_line(const CopyNote& note);
std::string to_lines(const base::Error& error);

/// Parses these lines as they arrive. Any other line counts as the sentence of an error.
class CopyReport {
 public:
  explicit CopyReport(OnCopyNote on_note) : on_note_(std::move(on_note)) {}

  void append(std::string_view bytes);
  /// The error that ended the copy. REQUIRES: all bytes were appended.
  const std::optional<base::Error>& error();
  size_t failed() const { return failed_; }

 private:
  void take(std::string line);

  OnCopyNote on_note_;
  std::string pending_;
  std::optional<base::Error> error_;
  size_t failed_ = 0;
};

}  // namespace muster::workspace
