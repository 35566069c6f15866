#include "control/log_lines.h"

#include <algorithm>

namespace muster::control {

using job::LogRecord;

LineSplitter::LineSplitter(std::string task, std::string host, int attempt)
    : task_(std::move(task)), host_(std::move(host)), attempt_(attempt) {}

void LineSplitter::emit_piece(const Source& source, Line& line, bool continues,
                              const Emit& emit) const {
  line.begun = continues;
  emit(LogRecord{.time = line.time,
                 .task = task_,
                 .attempt = attempt_,
                 .host = host_,
                 .rank = source.first,
                 .stream = source.second,
                 .text = std::exchange(line.text, {}),
                 .continues = continues});
}

void LineSplitter::add(const engine::LogFrame& frame, const Emit& emit, uint64_t at) {
  const Source source{frame.rank, frame.stream};
  Line& line = lines_[source];
  std::string_view rest = frame.bytes;
  while (!rest.empty()) {
    if (line.text.empty()) {
      line.time = frame.time;
      line.at = at;
    }
    const size_t newline = rest.find('\n');
    const size_t room = kLongestPiece - line.text.size();
    const size_t taken = std::min({newline, room, rest.size()});
    line.text += rest.substr(0, taken);
    const bool whole = taken == newline;
    rest.remove_prefix(taken + (whole ? 1 : 0));
    if (whole || line.text.size() == kLongestPiece) emit_piece(source, line, !whole, emit);
  }
}

void LineSplitter::flush(bool last, const Emit& emit) {
  for (auto& [source, line] : lines_) {
    if (line.text.empty() && !(last && line.begun)) continue;
    emit_piece(source, line, !last, emit);
  }
}

void LineSplitter::flush_before(uint64_t at, const Emit& emit) {
  for (auto& [source, line] : lines_) {
    if (!line.text.empty() && line.at < at) emit_piece(source, line, true, emit);
  }
}

std::map<LineSplitter::Source, LineSplitter::Line> LineSplitter::unfinished() const {
  std::map<Source, Line> lines;
  for (const auto& entry : lines_) {
    if (!entry.second.text.empty() || entry.second.begun) lines.insert(entry);
  }
  return lines;
}

bool LineSplitter::has_partial() const {
  return std::any_of(lines_.begin(), lines_.end(),
                     [](const auto& entry) { return !entry.second.text.empty(); });
}

}  // namespace muster::control
