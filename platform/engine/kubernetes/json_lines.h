// Splits a stream of JSON objects, one a line, as watches send them.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace muster::engine::kubernetes {

class JsonLines {
 public:
  /// `most`: the longest line.
  explicit JsonLines(size_t most) : most_(most) {}

  /// Calls `on_line` for each complete line, without its end; empty lines are skipped. `on_line`
  /// returns false to stop. False: a line is too long, or `on_line` has stopped.
  bool put(std::string_view bytes, const std::function<bool(std::string_view)>& on_line);
  /// Whether the last line has no end.
  bool has_rest() const { return !rest_.empty(); }
  bool is_too_long() const { return is_too_long_; }

 private:
  size_t most_;
  std::string rest_;
  bool is_too_long_ = false;
};

}  // namespace muster::engine::kubernetes
