// The keys that leave a program that one is attached to, and leave it running: ctrl-p ctrl-q, or
// others that were asked for.
//
// Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::cli {

/// "ctrl-p,ctrl-q" or "ctrl-@", "ctrl-\", "x": the bytes that a terminal sends for them. kInvalid:
/// it says no keys.
base::Result<std::string> parse_detach_keys(std::string_view text);

/// As one reads it: "ctrl-p ctrl-q".
std::string words_of_detach_keys(std::string_view keys);

/// Looks for the keys in what is typed, which may come in pieces cut anywhere.
class DetachKeys {
 public:
  /// Empty: nothing leaves.
  explicit DetachKeys(std::string keys) : keys_(std::move(keys)) {}

  /// What of `typed` goes on to the program; a key that may begin the sequence is held back until
  /// the next one is there.
  std::string pass(std::string_view typed);

  /// They were typed; what came behind them is dropped.
  bool found() const { return found_; }

 private:
  std::string keys_;
  size_t matched_ = 0;  ///< so many of them, at the end of what was typed
  bool found_ = false;
};

}  // namespace muster::cli
