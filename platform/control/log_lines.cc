#include "control/log_lines.h"

#include <charconv>

namespace muster::control {

using job::LogRecord;
using job::LogStream;

std::optional<RankTag> rank_tag_of(std::string_view line) {
  if (!line.starts_with('[')) return std::nullopt;
  const char* end = line.data() + line.size();
  int ignored_job = 0;
  const auto job_id = std::from_chars(line.data() + 1, end, ignored_job);
  if (job_id.ec != std::errc{} || job_id.ptr == end || *job_id.ptr != ',') return std::nullopt;
  RankTag tag;
  const auto rank = std::from_chars(job_id.ptr + 1, end, tag.rank);
  if (rank.ec != std::errc{} || tag.rank < 0) return std::nullopt;

  const size_t at = static_cast<size_t>(rank.ptr - line.data());
  const std::string_view rest = line.substr(at);
  for (const auto& [name, stream] :
       {std::pair<std::string_view, LogStream>{"]<stdout>:", LogStream::kOutput},
        {"]<stderr>:", LogStream::kError},
        {"]<stddiag>:", LogStream::kError}}) {
    if (!rest.starts_with(name)) continue;
    tag.stream = stream;
    tag.length = at + name.size();
    return tag;
  }
  return std::nullopt;
}

LineSplitter::LineSplitter(std::string task, std::string host, bool tagged)
    : task_(std::move(task)), host_(std::move(host)), tagged_(tagged) {}

void LineSplitter::emit_piece(Line& line, LogStream stream, bool continues,
                              const Emit& emit) const {
  LogRecord record{.time = line.time,
                   .task = task_,
                   .host = host_,
                   .stream = stream,
                   .text = std::move(line.text),
                   .continues = continues};
  if (line.begun) {
    record.rank = line.rank;
    record.stream = line.stream;
  } else if (const auto tag = tagged_ ? rank_tag_of(record.text) : std::nullopt) {
    record.rank = tag->rank;
    record.stream = tag->stream;
    record.text.erase(0, tag->length);
  }
  line.rank = record.rank;
  line.stream = record.stream;
  line.begun = continues;
  line.text.clear();
  emit(std::move(record));
}

void LineSplitter::add(const engine::LogFrame& frame, const Emit& emit) {
  Line& line = lines_.at(static_cast<size_t>(frame.stream));
  std::string_view rest = frame.bytes;
  while (!rest.empty()) {
    if (line.text.empty()) line.time = frame.time;
    const size_t newline = rest.find('\n');
    const size_t room = kLongestPiece - line.text.size();
    const size_t taken = std::min({newline, room, rest.size()});
    line.text += rest.substr(0, taken);
    const bool whole = taken == newline;
    rest.remove_prefix(taken + (whole ? 1 : 0));
    if (whole) {
      emit_piece(line, frame.stream, false, emit);
    } else if (line.text.size() == kLongestPiece) {
      emit_piece(line, frame.stream, true, emit);
    }
  }
}

void LineSplitter::flush(bool last, const Emit& emit) {
  for (size_t i = 0; i < lines_.size(); ++i) {
    Line& line = lines_[i];
    if (line.text.empty() && !(last && line.begun)) continue;
    emit_piece(line, static_cast<LogStream>(i), !last, emit);
  }
}

bool LineSplitter::has_partial() const {
  for (const Line& line : lines_) {
    if (!line.text.empty()) return true;
  }
  return false;
}

}  // namespace muster::control
