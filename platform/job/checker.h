// Collects the faults of a value during validation, up to record::kMostFaults, with checks that
// several fields use.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "record/input.h"

namespace muster::job {

using base::in_quotes;

inline constexpr int64_t kYearMilliseconds = int64_t{365} * 24 * 3600 * 1000;

inline constexpr int64_t kMaxCpuMilli = 65'536'000;
/// Of a task, and of all containers beside it. Small enough that the sum over the tasks of a job is
/// less than kUnlimited.
inline constexpr int64_t kMaxMemory = int64_t{1} << 50;

/// Linux passes no longer argument or NAME=VALUE to a program: MAX_ARG_STRLEN without its NUL.
inline constexpr size_t kLongestWord = (128 << 10) - 1;

class Checker {
 public:
  void require(bool holds, std::string field, std::string what) {
    if (holds || has_all_faults()) return;
    faults_.push_back({.field = std::move(field), .what = std::move(what)});
  }

  /// Whether require() drops further faults: the check of a long list may end.
  bool has_all_faults() const { return faults_.size() >= record::kMostFaults; }

  template <class Number>
  void require_range(Number value, Number low, Number high, const std::string& field) {
    require(value >= low && value <= high, field,
            std::to_string(value) + " is out of range; give " + std::to_string(low) + " to " +
                std::to_string(high));
  }

  /// The same for thousandths that users write as decimals.
  void require_milli(int64_t value, int64_t low, int64_t high, const std::string& field) {
    require(value >= low && value <= high, field,
            base::format_milli(value) + " is out of range; give " + base::format_milli(low) +
                " to " + base::format_milli(high));
  }

  void require_memory(int64_t bytes, const std::string& field) {
    require(bytes >= 0, field, "is negative");
    require(bytes <= kMaxMemory, field,
            base::format_bytes(bytes) + " is out of range; give 0 to " +
                base::format_bytes(kMaxMemory));
  }

  std::vector<base::Fault> take() { return std::move(faults_); }

 private:
  std::vector<base::Fault> faults_;
};

inline bool has_nul(std::string_view text) {
  return text.find('\0') != std::string_view::npos;
}

/// Whether each part between '/' is a name: not empty, "." or "..".
inline bool has_plain_parts(std::string_view relative_path) {
  if (relative_path.empty() || relative_path.ends_with('/')) return false;
  const std::vector<std::string> parts = base::split(relative_path, '/');
  return std::none_of(parts.begin(), parts.end(), [](const std::string& part) {
    return part.empty() || part == "." || part == "..";
  });
}

inline bool is_dns_label(std::string_view text, size_t longest) {
  const auto alphanumeric = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  if (text.empty() || text.size() > longest) return false;
  if (!alphanumeric(text.front()) || !alphanumeric(text.back())) return false;
  return std::all_of(text.begin(), text.end(), [&](char c) { return alphanumeric(c) || c == '-'; });
}

inline bool is_variable_name(std::string_view text) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !text.empty() && letter(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

/// A name that comes from elsewhere: of a pool, a GPU model, a topology level. Any text that a line
/// of a table can show.
inline bool is_token(std::string_view text) {
  constexpr size_t kLongest = 100;
  const auto shown = [](char c) { return c >= ' ' && c <= '~'; };
  return !text.empty() && text.size() <= kLongest && text.front() != ' ' && text.back() != ' ' &&
         std::all_of(text.begin(), text.end(), shown);
}

}  // namespace muster::job
