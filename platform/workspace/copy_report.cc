#include "workspace/copy_report.h"

#include <utility>

namespace muster::workspace {

using base::Error;
using base::ErrorCode;

namespace {

constexpr std::string_view kSkipped = "skipped: ";
constexpr std::string_view kFailed = "failed: ";
constexpr std::string_view kError = "error: ";
constexpr std::string_view kAdvice = "advice: ";
/// No program of Muster's prints a longer line; longer lines come from another program.
constexpr size_t kLongestLine = 16 << 10;

bool take_off(std::string& line, std::string_view head) {
  if (!line.starts_with(head)) return false;
  line.erase(0, head.size());
  return true;
}

Error error_of(const std::string& line) {
  const size_t colon = line.find(": ");
  const ErrorCode code = base::error_code_of(line.substr(0, colon));
  const bool has_code =
      colon != std::string::npos && base::to_string(code) == line.substr(0, colon);
  return {.code = has_code ? code : ErrorCode::kInternal,
          .what = has_code ? line.substr(colon + 2) : line};
}

}  // namespace

std::string to_line(const CopyNote& note) {
  const bool skipped = note.kind == CopyNote::Kind::kSkipped;
  return std::string(skipped ? kSkipped : kFailed) + note.text + "\n";
}

std::string to_lines(const Error& error) {
  std::string lines = std::string(kError) + std::string(base::to_string(error.code)) + ": ";
  lines += error.what + "\n";
  if (!error.advice.empty()) lines += std::string(kAdvice) + error.advice + "\n";
  return lines;
}

void CopyReport::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    pending_ += part.substr(0, kLongestLine - std::min(kLongestLine, pending_.size()));
    if (end == std::string_view::npos) return;
    take(std::exchange(pending_, {}));
    bytes.remove_prefix(end + 1);
  }
}

const std::optional<Error>& CopyReport::error() {
  if (!pending_.empty()) take(std::exchange(pending_, {}));
  return error_;
}

void CopyReport::take(std::string line) {
  if (take_off(line, kSkipped)) return on_note_({CopyNote::Kind::kSkipped, std::move(line)});
  if (take_off(line, kFailed)) {
    ++failed_;
    return on_note_({CopyNote::Kind::kFailed, std::move(line)});
  }
  if (error_ && take_off(line, kAdvice)) {
    error_->advice = std::move(line);
  } else if (!error_) {
    take_off(line, kError);
    error_ = error_of(line);
  }
}

}  // namespace muster::workspace
