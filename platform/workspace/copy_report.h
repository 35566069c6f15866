// What is said of a copy: what of it was left out, how much it was, and what went wrong. The end in
// the task says it on its standard error, a line each, which the other end reads.
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

/// One entry that was not copied; the others are.
struct CopyNote {
  enum class Kind {
    kSkipped,  ///< nothing that could be copied: a socket, a device
    kFailed,   ///< it should have been
  };
  Kind kind = Kind::kFailed;
  std::string text;  ///< harmless on a terminal

  bool operator==(const CopyNote&) const = default;
};
using OnCopyNote = std::function<void(const CopyNote&)>;

struct CopyTotals {
  size_t files = 0;  ///< and links
  int64_t bytes = 0;
  size_t failed = 0;

  bool operator==(const CopyTotals&) const = default;
};

std::string to_line(const CopyNote& note);
std::string to_lines(const base::Error& error);

/// Reads those lines as they come. Whatever else comes is taken for an error's sentence.
class CopyReport {
 public:
  explicit CopyReport(OnCopyNote on_note) : on_note_(std::move(on_note)) {}

  void append(std::string_view bytes);
  /// What ended it, once all has come.
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
