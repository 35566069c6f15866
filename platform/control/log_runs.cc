#include "control/log_runs.h"

#include <algorithm>
#include <cstring>

namespace muster::control {

namespace {

/// How much of `text` is whole lines.
size_t whole_lines(std::string_view text) {
  const void* const newline = ::memrchr(text.data(), '\n', text.size());
  if (newline == nullptr) return 0;
  return static_cast<size_t>(static_cast<const char*>(newline) - text.data()) + 1;
}

}  // namespace

RunSplitter::RunSplitter(job::LogSource of_task, std::shared_ptr<const job::LogPattern> only)
    : of_task_(std::move(of_task)), only_(std::move(only)) {}

RunSplitter::Entry& RunSplitter::entry_of(const Key& key) {
  if (last_ != nullptr && last_->first == key) return *last_;
  const auto [at, made] = streams_.try_emplace(key);
  if (made) {
    job::LogSource source = of_task_;
    source.rank = key.first;
    source.stream = key.second;
    at->second.source = std::make_shared<const job::LogSource>(std::move(source));
  }
  last_ = &*at;
  return *last_;
}

bool RunSplitter::shows(const Key& key, std::string_view line) const {
  return only_ == nullptr || key.second == job::LogStream::kNotice || only_->found_in(line);
}

void RunSplitter::add(const engine::LogFrame& frame, const Emit& emit, uint64_t at) {
  Entry& entry = entry_of({frame.rank, frame.stream});
  std::string_view rest = finish_line(entry, frame, at, emit);
  const size_t whole = whole_lines(rest);
  emit_lines(entry, frame.time, rest.substr(0, whole), emit);
  rest.remove_prefix(whole);
  Line& line = entry.second.line;
  while (!rest.empty()) {
    line.text = rest.substr(0, kLongestPiece);
    line.time = frame.time;
    line.at = at;
    rest.remove_prefix(line.text.size());
    if (line.text.size() == kLongestPiece) emit_piece(entry, false, emit);
  }
}

/// Goes on with the line that is not finished, if there is one; what of the frame stands behind it.
std::string_view RunSplitter::finish_line(Entry& entry, const engine::LogFrame& frame, uint64_t at,
                                          const Emit& emit) {
  Line& line = entry.second.line;
  std::string_view rest = frame.bytes;
  while (!rest.empty() && (line.begun || !line.text.empty())) {
    if (line.text.empty()) {
      line.time = frame.time;
      line.at = at;
    }
    const size_t newline = rest.find('\n');
    const size_t taken = std::min({newline, kLongestPiece - line.text.size(), rest.size()});
    line.text += rest.substr(0, taken);
    const bool whole = taken == newline;
    rest.remove_prefix(taken + (whole ? 1 : 0));
    if (whole || line.text.size() == kLongestPiece) emit_piece(entry, whole, emit);
  }
  return rest;
}

void RunSplitter::emit_lines(Entry& entry, base::Time time, std::string_view lines,
                             const Emit& emit) const {
  const auto& [key, stream] = entry;
  if (only_ == nullptr) {
    if (!lines.empty()) emit({key, stream.source, time, lines});
    return;
  }
  while (!lines.empty()) {
    const size_t size = lines.find('\n') + 1;
    if (shows(key, lines.substr(0, size - 1))) {
      emit({key, stream.source, time, lines.substr(0, size)});
    }
    lines.remove_prefix(size);
  }
}

void RunSplitter::emit_piece(Entry& entry, bool last, const Emit& emit) const {
  Line& line = entry.second.line;
  if (!line.begun) line.hidden = !shows(entry.first, line.text);
  if (last) line.text += '\n';
  if (!line.hidden) emit({entry.first, entry.second.source, line.time, line.text});
  line.text = {};
  line.begun = !last;
  line.hidden = line.hidden && line.begun;
}

void RunSplitter::flush(bool last, const Emit& emit) {
  for (Entry& entry : streams_) {
    const Line& line = entry.second.line;
    if (line.text.empty() && !(last && line.begun)) continue;
    const bool undecided =
        only_ != nullptr && !line.begun && !last && line.text.size() < job::kMaxMatchedBytes;
    if (!undecided) emit_piece(entry, last, emit);
  }
}

void RunSplitter::flush_before(uint64_t at, const Emit& emit) {
  for (Entry& entry : streams_) {
    const Line& line = entry.second.line;
    if (!line.text.empty() && line.at < at) emit_piece(entry, false, emit);
  }
}

std::map<RunSplitter::Key, RunSplitter::Line> RunSplitter::unfinished() const {
  std::map<Key, Line> lines;
  for (const auto& [key, stream] : streams_) {
    if (!stream.line.text.empty() || stream.line.begun) lines.emplace(key, stream.line);
  }
  return lines;
}

void RunSplitter::restore(const Key& key, Line line) {
  entry_of(key).second.line = std::move(line);
}

bool RunSplitter::has_partial() const {
  return std::any_of(streams_.begin(), streams_.end(),
                     [](const auto& entry) { return !entry.second.line.text.empty(); });
}

}  // namespace muster::control
