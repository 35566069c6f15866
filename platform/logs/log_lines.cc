#include "logs/log_lines.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace muster::logs {

namespace {

/// The length of the whole lines in `text`.
size_t whole_lines(std::string_view text) {
  const void* const newline = ::memrchr(text.data(), '\n', text.size());
  if (newline == nullptr) return 0;
  return static_cast<size_t>(static_cast<const char*>(newline) - text.data()) + 1;
}

}  // namespace

RunSplitter::RunSplitter(job::LogSource of_task, std::shared_ptr<const job::LogPattern> only,
                         Ranks ranks)
    : of_task_(std::move(of_task)), only_(std::move(only)), ranks_(ranks) {}

RunSplitter::Entry& RunSplitter::entry_of(const Key& key) {
  if (last_ != nullptr && last_->first == key) return *last_;
  const auto [at, made] = streams_.try_emplace(key);
  if (made) {
    job::LogSource source = of_task_;
    source.rank = key.first;
    source.stream = key.second;
    if (source.rank && ranks_ == Ranks::kOfAnyHost) source.host.clear();
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

/// Continues the unfinished line, if there is one. Returns the rest of the frame.
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

bool RunSplitter::may_still_match(const Line& line) const {
  return only_ != nullptr && !line.begun && line.text.size() < job::kMaxMatchedBytes;
}

void RunSplitter::flush(bool last, const Emit& emit) {
  if (!last) return flush_waiting(std::numeric_limits<uint64_t>::max(), emit);
  for (Entry& entry : streams_) {
    const Line& line = entry.second.line;
    if (!line.text.empty() || line.begun) emit_piece(entry, true, emit);
  }
}

void RunSplitter::flush_waiting(uint64_t at, const Emit& emit) {
  for (Entry& entry : streams_) {
    const Line& line = entry.second.line;
    const bool waits = !line.text.empty() && line.at < at;
    if (waits && !may_still_match(line)) emit_piece(entry, false, emit);
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

namespace {

RunSplitter::Emit line_by_line(const LineSplitter::Emit& emit) {
  return [&emit](const RunSplitter::Run& run) {
    job::LogRecord record = job::record_of(*run.source);
    record.time = run.time;
    job::for_each_line(run.bytes, record, [&](const job::LogRecord& line) {
      emit(line);
      return true;
    });
  };
}

}  // namespace

LineSplitter::LineSplitter(std::string task, std::string host, int attempt)
    : runs_({.task = std::move(task), .attempt = attempt, .host = std::move(host), .rank = {}}) {}

void LineSplitter::add(const engine::LogFrame& frame, const Emit& emit) {
  runs_.add(frame, line_by_line(emit));
}

void LineSplitter::flush(bool last, const Emit& emit) {
  runs_.flush(last, line_by_line(emit));
}

namespace {

/// The memory that a run costs beside its bytes.
template <class Held>
size_t cost_of(const Held& run) {
  return sizeof(Held) + run.bytes.size();
}

size_t count_lines(std::string_view bytes) {
  const auto newlines = static_cast<size_t>(std::count(bytes.begin(), bytes.end(), '\n'));
  return newlines + (bytes.ends_with('\n') ? 0 : 1);
}

}  // namespace

void LogTail::add(const RunSplitter::Run& run, const std::shared_ptr<LogCounts>& counts) {
  LastLine& last = last_lines_[run.source];
  std::string_view bytes = run.bytes;
  if (last.is_dropped) {
    const size_t rest = std::min(bytes.find('\n'), bytes.size() - 1) + 1;
    last.is_open = last.is_dropped = bytes[rest - 1] != '\n';
    if (counts != nullptr) (*counts)[run.key] += rest;
    bytes.remove_prefix(rest);
    if (bytes.empty()) return;
  }
  runs_.push_back({.key = run.key,
                   .source = run.source,
                   .time = run.time,
                   .bytes = std::string(bytes),
                   .lines = count_lines(bytes) - (last.is_open ? 1 : 0),
                   .counts = counts});
  last.is_open = !bytes.ends_with('\n');
  lines_ += runs_.back().lines;
  cost_ += cost_of(runs_.back());
  // Drops whole runs, for speed; trim() drops single lines.
  while (!runs_.empty()) {
    const bool needs_memory = cost_ - cost_of(runs_.front()) >= kMostTailBytes;
    if (!needs_memory && lines_ - runs_.front().lines < most_lines_) break;
    drop_first(needs_memory);
  }
}

void LogTail::cut_first(size_t bytes, size_t lines) {
  Held& first = runs_.front();
  if (first.counts != nullptr) (*first.counts)[first.key] += bytes;
  first.bytes.erase(0, bytes);
  first.lines -= lines;
  cost_ -= bytes;
  lines_ -= lines;
}

void LogTail::pop_first() {
  cut_first(runs_.front().bytes.size(), runs_.front().lines);
  cost_ -= cost_of(runs_.front());
  runs_.pop_front();
}

/// Drops the first run, and the other pieces of its last line unless only memory is short.
void LogTail::drop_first(bool for_memory) {
  const job::LogBatch::Source source = runs_.front().source;
  const bool ends_within_line = !runs_.front().bytes.ends_with('\n');
  pop_first();
  if (!ends_within_line) return;
  if (!for_memory) return drop_rest_of_line(source);
  const auto next = std::find_if(runs_.begin(), runs_.end(),
                                 [&](const Held& held) { return held.source == source; });
  if (next == runs_.end()) {
    last_lines_[source].is_open = false;
  } else {
    ++next->lines;
    ++lines_;
  }
}

void LogTail::drop_rest_of_line(const job::LogBatch::Source& source) {
  bool is_ended = false;
  for (Held& held : runs_) {
    if (held.source != source) continue;
    const size_t newline = held.bytes.find('\n');
    is_ended = newline != std::string::npos;
    const size_t rest = is_ended ? newline + 1 : held.bytes.size();
    if (held.counts != nullptr) (*held.counts)[held.key] += rest;
    cost_ -= rest;
    held.bytes.erase(0, rest);
    if (held.bytes.empty()) cost_ -= cost_of(held);
    if (is_ended) break;
  }
  // All at once: a line may have very many pieces.
  std::erase_if(runs_,
                [&](const Held& held) { return held.source == source && held.bytes.empty(); });
  if (!is_ended) last_lines_[source].is_dropped = true;
}

void LogTail::trim() {
  if (runs_.empty()) return;
  const std::string_view first = runs_.front().bytes;
  size_t cut = 0;
  size_t lines = 0;
  while (cut < first.size() && (lines_ - lines > most_lines_ || cost_ - cut > kMostTailBytes)) {
    cut =
        first.find('\n', cut) == std::string_view::npos ? first.size() : first.find('\n', cut) + 1;
    ++lines;
  }
  if (cut == first.size()) return drop_first(lines_ - lines < most_lines_);
  cut_first(cut, lines);
}

void LogTail::take_some(job::LogBatch& batch, size_t bytes) {
  size_t taken = 0;
  while (!runs_.empty() && taken < bytes) {
    const Held& first = runs_.front();
    batch.add(first.source, first.time, first.bytes);
    taken += first.bytes.size();
    pop_first();
  }
}

}  // namespace muster::logs
