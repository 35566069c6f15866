#include "engine/kubernetes/json_lines.h"

#include "base/text.h"

namespace muster::engine::kubernetes {

bool JsonLines::put(std::string_view bytes, const std::function<bool(std::string_view)>& on_line) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (piece.size() + rest_.size() > most_) {
      is_too_long_ = true;
      return false;
    }
    if (end == std::string_view::npos) {
      rest_ += piece;
      return true;
    }
    bytes.remove_prefix(end + 1);
    bool goes_on = true;
    if (rest_.empty()) {
      const std::string_view line = base::trimmed(piece);
      goes_on = line.empty() || on_line(line);
    } else {
      rest_ += piece;
      const std::string whole = std::move(rest_);
      rest_.clear();
      const std::string_view line = base::trimmed(whole);
      goes_on = line.empty() || on_line(line);
    }
    if (!goes_on) return false;
  }
  return true;
}

}  // namespace muster::engine::kubernetes
