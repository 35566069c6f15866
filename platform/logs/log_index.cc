#include "logs/log_index.h"

#include <algorithm>
#include <string_view>

namespace muster::logs {

using base::Result;
using engine::LogFrame;

namespace {

/// A line without a newline is followed at most this far back: a progress bar may never end its line.
constexpr uint64_t kFarthestBack = 1 << 20;

/// Puts lines together from frames.
class LineBuilder {
 public:
  explicit LineBuilder(uint64_t number) : number_(number) {}

  /// Calls `take` for each line that ends in the frame. Lines are numbered only if `counted`, and
  /// dropped otherwise. False: `take` has returned false.
  bool add(const LogFrame& frame, bool counted, const std::function<bool(NumberedLine)>& take) {
    Partial& partial = partials_[{frame.rank, frame.stream}];
    std::string_view rest = frame.bytes;
    while (!rest.empty()) {
      const size_t newline = rest.find('\n');
      if (partial.bytes == 0) partial.time = frame.time;
      const std::string_view piece = rest.substr(0, newline);
      const size_t room =
          LogIndex::kMostMatched - std::min(LogIndex::kMostMatched, partial.text.size());
      partial.text += piece.substr(0, room);
      partial.bytes += piece.size();
      if (newline == std::string_view::npos) break;
      rest.remove_prefix(newline + 1);
      NumberedLine line = line_of(frame.rank, frame.stream, partial);
      partial = {};
      if (!counted) continue;
      line.number = number_++;
      if (!take(std::move(line))) return false;
    }
    return true;
  }

  bool unfinished(const std::function<bool(NumberedLine)>& take) {
    for (auto& [key, partial] : partials_) {
      if (partial.bytes == 0) continue;
      NumberedLine line = line_of(key.first, key.second, partial);
      line.number = number_;
      line.unfinished = true;
      if (!take(std::move(line))) return false;
    }
    return true;
  }

  /// The front of the log was cut up to a place where line `number` ends next.
  void restart(uint64_t number) {
    partials_.clear();
    number_ = number;
  }

 private:
  struct Partial {
    std::string text;
    uint64_t bytes = 0;
    base::Time time;
  };

  static NumberedLine line_of(std::optional<int> rank, job::LogStream stream, Partial& partial) {
    return {.record = {.time = partial.time,
                       .rank = rank,
                       .stream = stream,
                       .text = std::move(partial.text)},
            .bytes = partial.bytes};
  }

  std::map<std::pair<std::optional<int>, job::LogStream>, Partial> partials_;
  uint64_t number_;
};

void shorten(NumberedLine& line) {
  std::string& text = line.record.text;
  if (text.size() <= LogIndex::kMostShown) return;
  size_t end = LogIndex::kMostShown;
  // Not within a character of several bytes.
  while (end > LogIndex::kMostShown - 4 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  text.resize(end);
}

}  // namespace

void LogIndex::count(const LogFrame& frame) {
  const uint64_t at = extent_.bytes;
  if (at - entries_.back().offset >= kStep) {
    uint64_t from = at;
    for (const auto& [key, begin] : unfinished_) from = std::min(from, begin);
    if (at - from > kFarthestBack) from = at;
    entries_.push_back({.offset = at, .from = from, .line = extent_.lines});
  }
  const Key key{frame.rank, frame.stream};
  extent_.lines += static_cast<uint64_t>(std::count(frame.bytes.begin(), frame.bytes.end(), '\n'));
  const bool has_newline = frame.bytes.find('\n') != std::string::npos;
  if (frame.bytes.ends_with('\n')) {
    unfinished_.erase(key);
  } else if (has_newline) {
    unfinished_[key] = at;
  } else {
    unfinished_.emplace(key, at);
  }
  extent_.bytes += engine::size_in_log(frame);
  if (frame.cut == 0) return;
  unfinished_.clear();
  entries_.push_back({.offset = extent_.bytes, .from = extent_.bytes, .line = extent_.lines});
}

Result<void> LogIndex::extend() {
  LogFrame frame;
  const uint64_t begin = extent_.bytes;
  extent_.complete = true;
  if (failure_) return *failure_;
  while (true) {
    const Result<bool> more = log_->next(frame);
    if (!more) {
      // What lacks now, such as a free descriptor, may be there at the next request.
      if (more.error().code != base::ErrorCode::kExhausted) failure_ = more.error();
      return more.error();
    }
    if (!*more) return {};
    count(frame);
    if (extent_.bytes - begin > kMostRead) {
      extent_.complete = false;
      return {};
    }
  }
}

const LogIndex::Entry& LogIndex::entry_before(uint64_t line) const {
  const auto after =
      std::upper_bound(entries_.begin(), entries_.end(), line,
                       [](uint64_t sought, const Entry& entry) { return sought < entry.line; });
  return after == entries_.begin() ? entries_.front() : *std::prev(after);
}

Result<void> LogIndex::read_from(engine::LogCursor& log, const Entry& entry,
                                 const std::function<bool(NumberedLine)>& take) {
  MUSTER_CHECK(log.seek(entry.from));
  LineBuilder builder(entry.line);
  LogFrame frame;
  uint64_t counted_from = entry.offset;
  for (uint64_t at = entry.from; at < extent_.bytes; at += engine::size_in_log(frame)) {
    MUSTER_TRY(const bool more, log.next(frame));
    if (!more) break;
    if (frame.cut > 0) {
      // Since the index was made, the front was cut: the lines begin with the next known place.
      const uint64_t end = at + frame.cut;
      const auto next = std::find_if(entries_.begin(), entries_.end(),
                                     [&](const Entry& each) { return each.offset >= end; });
      counted_from = next == entries_.end() ? extent_.bytes : next->offset;
      extent_.first = next == entries_.end() ? extent_.lines : next->line;
      builder.restart(extent_.first);
      continue;
    }
    if (!builder.add(frame, at >= counted_from, take)) return {};
  }
  builder.unfinished(take);
  return {};
}

Result<LogWindow> LogIndex::window(engine::LogCursor& log, const LogWindowQuery& query) {
  MUSTER_CHECK(extend());
  const size_t most = std::min(query.lines, kMostLines);
  const uint64_t first = query.line.value_or(extent_.lines > most ? extent_.lines - most : 0);
  LogWindow window;
  if (most > 0) {
    MUSTER_CHECK(read_from(log, entry_before(first), [&](NumberedLine line) {
      if (line.number < first) return true;
      if (line.number >= first + most && !line.unfinished) return false;
      shorten(line);
      window.lines.push_back(std::move(line));
      return true;
    }));
  }
  window.extent = extent_;
  return window;
}

Result<LogSearchResult> LogIndex::search(engine::LogCursor& log, const LogSearchQuery& query) {
  MUSTER_CHECK(extend());
  LogSearchResult result;
  std::deque<NumberedLine> before;
  size_t after = 0;
  size_t hits = 0;
  uint64_t read = 0;
  bool is_late = false;
  const auto show = [&](NumberedLine line) {
    shorten(line);
    result.lines.push_back(std::move(line));
  };
  MUSTER_CHECK(read_from(log, entry_before(query.line), [&](NumberedLine line) {
    const bool is_in_range = line.number >= query.line;
    read += line.bytes + 1;
    line.hit = is_in_range && query.matches(line.record);
    const bool is_enough = hits >= query.hits || read > kMostRead || is_late;
    if (is_enough && (line.hit || after == 0)) {
      result.next = line.number;
      return false;
    }
    is_late = is_late || (is_in_range && query.is_late && query.is_late());
    if (line.hit) {
      ++hits;
      for (NumberedLine& each : before) show(std::move(each));
      before.clear();
      after = query.context;
      show(std::move(line));
    } else if (after > 0) {
      --after;
      show(std::move(line));
    } else if (query.context > 0 && is_in_range) {
      if (before.size() == query.context) before.pop_front();
      before.push_back(std::move(line));
    }
    return true;
  }));
  if (!result.next && !extent_.complete) result.next = extent_.lines;
  result.extent = extent_;
  return result;
}

}  // namespace muster::logs
