#include "cli/logs/held_lines.h"

#include <algorithm>
#include <utility>

namespace muster::cli::logs {

namespace {

constexpr size_t kPieceBytes = 4 << 10;

bool is_same_source(const job::LogRecord& one, const job::LogRecord& other) {
  return one.rank == other.rank && one.stream == other.stream && one.attempt == other.attempt &&
         one.task == other.task && one.host == other.host;
}

/// "12,345"
std::string grouped(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

}  // namespace

/// The part of a round that each rank has.
size_t HeldLines::turn() const {
  return std::max<size_t>(1, kRound / std::max<size_t>(1, ranks_.size()));
}

/// The latest piece if the record continues it, or a new one.
HeldLines::Piece& HeldLines::piece_for(const job::LogRecord& record) {
  if (latest_ != ranks_.end()) {
    Piece& latest = latest_->second.pieces.back();
    // A line of several records begins a piece, so that it can be left out from its beginning.
    const bool begins_long_line = record.continues && !latest.lines.back().continues;
    if (latest.text.size() < kPieceBytes && !begins_long_line &&
        is_same_source(latest.source, record)) {
      return latest;
    }
  }
  const bool is_notice = record.stream == job::LogStream::kNotice;
  const auto [entry, is_new] =
      ranks_.try_emplace({record.attempt, record.task, record.rank, is_notice});
  Rank& rank = entry->second;
  const uint64_t number = ++number_;
  if (is_new) {
    rank.credit = turn();
    turns_.emplace(number, entry);
  }
  Piece& piece = rank.pieces.emplace_back();
  piece.number = number;
  piece.source.task = record.task;
  piece.source.attempt = record.attempt;
  piece.source.host = record.host;
  piece.source.rank = record.rank;
  piece.source.stream = record.stream;
  rank.held += piece.cost();
  held_ += piece.cost();
  latest_ = entry;
  return piece;
}

void HeldLines::add(const job::LogRecord& record) {
  Piece& piece = piece_for(record);
  piece.text += record.text;
  piece.lines.push_back(
      {.time = record.time, .size = record.text.size(), .continues = record.continues});
  const size_t cost = record.text.size() + sizeof(Line);
  latest_->second.held += cost;
  held_ += cost;
  if (held_ > most_) leave_out();
}

/// Each rank keeps its latest piece.
void HeldLines::leave_out() {
  auto fullest = ranks_.end();
  for (auto entry = ranks_.begin(); entry != ranks_.end(); ++entry) {
    if (entry->second.pieces.size() < 2) continue;
    if (fullest == ranks_.end() || entry->second.held > fullest->second.held) fullest = entry;
  }
  if (fullest == ranks_.end()) return;
  Rank& rank = fullest->second;
  const bool has_turn = turns_.erase(rank.pieces.front().number) > 0;
  const size_t kept = rank.held / 2;
  // The end of a line does not remain without its beginning.
  while (rank.pieces.size() > 1 && (rank.held > kept || rank.is_cut)) drop_first(rank);
  if (has_turn) turns_.emplace(rank.pieces.front().number, fullest);
}

void HeldLines::drop_first(Rank& rank) {
  const Piece& first = rank.pieces.front();
  rank.missing += static_cast<uint64_t>(std::count_if(
      first.lines.begin(), first.lines.end(), [](const Line& line) { return !line.continues; }));
  rank.is_cut = first.lines.back().continues;
  rank.held -= first.cost();
  held_ -= first.cost();
  rank.pieces.pop_front();
}

void HeldLines::start_round() {
  for (const Ranks::iterator entry : std::exchange(spent_, {})) {
    entry->second.credit = turn();
    turns_.emplace(entry->second.pieces.front().number, entry);
  }
}

void HeldLines::take_some(const Handlers& handlers) {
  if (turns_.empty()) start_round();
  const Ranks::iterator entry = turns_.begin()->second;
  turns_.erase(turns_.begin());
  Rank& rank = entry->second;
  Piece piece = std::move(rank.pieces.front());
  rank.pieces.pop_front();
  const size_t cost = piece.cost();
  rank.held -= cost;
  held_ -= cost;
  rank.credit -= std::min(rank.credit, cost);
  const uint64_t missing =
      std::exchange(rank.missing, 0) + (std::exchange(rank.is_cut, false) ? 1 : 0);
  if (rank.pieces.empty()) {
    if (latest_ == entry) latest_ = ranks_.end();
    ranks_.erase(entry);
  } else if (rank.credit > 0) {
    turns_.emplace(rank.pieces.front().number, entry);
  } else {
    spent_.push_back(entry);
  }

  job::LogRecord record = std::move(piece.source);
  record.time = piece.lines.front().time;
  if (missing > 0) handlers.on_gap(record, missing);
  size_t begin = 0;
  for (const Line& line : piece.lines) {
    record.time = line.time;
    record.text.assign(piece.text, begin, line.size);
    record.continues = line.continues;
    begin += line.size;
    handlers.on_line(record);
  }
}

job::LogRecord gap_of(const job::LogRecord& next, uint64_t lines) {
  job::LogRecord gap = next;
  gap.text = "... (" + grouped(lines) + (lines == 1 ? " line" : " lines") +
             " not shown; --no-fold shows all)";
  gap.continues = false;
  return gap;
}

}  // namespace muster::cli::logs
