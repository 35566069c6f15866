#include "engine/container/json_lines.h"

#include <utility>

namespace muster::engine {

namespace {

std::string_view without_return(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

base::Result<void> JsonLines::put(std::string_view bytes, const OnLine& on_line) {
  while (true) {
    const size_t end = bytes.find('\n');
    if (end == std::string_view::npos) break;
    waiting_ += bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    const std::string line = std::exchange(waiting_, {});
    const std::string_view text = without_return(line);
    if (!text.empty() && !on_line(text)) return {};
  }
  waiting_ += bytes;
  if (waiting_.size() <= kLongest) return {};
  return base::Error{
      .code = base::ErrorCode::kInternal,
      .what = "the engine sends a line of more than " + std::to_string(kLongest) + " bytes"};
}

std::string JsonLines::take_rest() {
  const std::string rest = std::exchange(waiting_, {});
  return std::string(without_return(rest));
}

}  // namespace muster::engine
