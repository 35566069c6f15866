// One JSON document a line, out of the pieces that an endless body comes in.
//
// No I/O; not thread-safe.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::engine {

class JsonLines {
 public:
  /// Returns false to have no more.
  using OnLine = std::function<bool(std::string_view line)>;

  /// Hands on each line that has come to its end, but empty ones. kInternal: a line without end.
  base::Result<void> put(std::string_view bytes, const OnLine& on_line);
  /// What has come of a last line without an end.
  std::string take_rest();

 private:
  static constexpr size_t kLongest = 4 << 20;

  std::string waiting_;
};

}  // namespace muster::engine
