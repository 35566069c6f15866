// The patterns of retry rules: what a user may write, and whether a line holds it.
//
// ECMAScript by std::regex, matched breadth first (a libstdc++ extension): the usual way
// backtracks, and takes an hour for `(a*)*b` on a line of 40 letters. What cannot be matched so
// (back references) or would grow without bound (long patterns, large counts) is refused.
//
// Pure; thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace muster::job {

inline constexpr size_t kMaxPatternBytes = 200;
inline constexpr int kMaxPatternRepeats = 100;
/// Of a longer line only so much is looked at, from its start.
inline constexpr size_t kMaxMatchedBytes = 1024;

class LogPattern {
 public:
  /// kInvalid says what is wrong with it.
  static base::Result<LogPattern> compile(const std::string& text);

  bool found_in(std::string_view line) const;

 private:
  /// Keeps <regex> out of this header, which most of the platform includes.
  struct Compiled;
  explicit LogPattern(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}

  std::shared_ptr<const Compiled> compiled_;  ///< never null; shared by copies
};

}  // namespace muster::job
