#include "dialects/gradient/log_lines.h"

namespace muster::dialects::gradient {

bool LogLines::add(const job::LogRecord& record) {
  printer_.print(record, text_);
  take_whole_lines();
  return !is_full();
}

std::vector<std::pair<int64_t, std::string>> LogLines::finish() {
  printer_.finish(text_);
  take_whole_lines();
  return std::move(lines_);
}

void LogLines::take_whole_lines() {
  size_t begin = 0;
  for (size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n', begin)) {
    ++number_;
    if (number_ >= span_.first && !is_full()) {
      lines_.emplace_back(number_, text_.substr(begin, end - begin));
    }
    begin = end + 1;
  }
  text_.erase(0, begin);
}

}  // namespace muster::dialects::gradient
