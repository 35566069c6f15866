// The lines that a slow terminal has not taken yet.
//
// A terminal may take less than the ranks of a job print. If the reader of the log then waited for
// the terminal, all lines would wait behind the lines of the rank that prints most, for longer and
// longer. So the reader continues, and this class holds the lines that it reads:
//
//   - The lines of each rank keep their order. Ranks take turns of equal size, so that a line waits
//     for about kRound bytes of other ranks, however much they print. Within a round, the lines of
//     all ranks are in the order in which they came; a round is as much as a few screens.
//   - At most a fixed number of bytes is held. When there are more, the rank that holds the most
//     loses its oldest lines, down to a half of what it holds. The lines are left out in large
//     pieces, because a gap costs a line of its own.
//
// Pure. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "job/log_record.h"

namespace muster::cli::logs {

class HeldLines {
 public:
  static constexpr size_t kMostHeld = 4 << 20;
  /// Bytes of all ranks together in one round of turns.
  static constexpr size_t kRound = 64 << 10;

  explicit HeldLines(size_t most = kMostHeld) : most_(most) {}

  void add(const job::LogRecord& record);

  bool empty() const { return turns_.empty() && spent_.empty(); }
  size_t bytes() const { return held_; }  ///< in memory, about

  /// Receive the next lines. The records are valid during the call.
  struct Handlers {
    std::function<void(const job::LogRecord&)> on_line;
    /// `lines` lines were left out before `next`, a record of the same rank.
    std::function<void(const job::LogRecord& next, uint64_t lines)> on_gap;
  };

  /// Passes on some lines of one rank: a few kilobytes, or one longer line. REQUIRES: not empty.
  void take_some(const Handlers& handlers);

 private:
  struct Line {
    base::Time time;
    size_t size = 0;
    bool continues = false;
  };

  /// Lines of one source that arrived in succession.
  struct Piece {
    uint64_t number = 0;    ///< in order of arrival
    job::LogRecord source;  ///< without its text
    std::string text;       ///< of all lines, without newlines
    std::vector<Line> lines;

    size_t cost() const { return sizeof(Piece) + text.size() + lines.size() * sizeof(Line); }
  };

  struct Rank {
    std::deque<Piece> pieces;
    size_t held = 0;       ///< the cost of all pieces
    size_t credit = 0;     ///< bytes that it may still write in this turn
    uint64_t missing = 0;  ///< lines that were left out before the first piece
    bool is_cut = false;   ///< the last of them lacks its end
  };

  /// The messages of Muster about a task are apart from the task's output: they are few, so that
  /// none is left out.
  using Key = std::tuple<int, std::string, std::optional<int>, bool>;
  using Ranks = std::map<Key, Rank>;

  Piece& piece_for(const job::LogRecord& record);
  void leave_out();
  void drop_first(Rank& rank);
  void start_round();
  size_t turn() const;

  size_t most_;
  size_t held_ = 0;
  uint64_t number_ = 0;                    ///< of the latest piece
  Ranks ranks_;                            ///< those with lines
  Ranks::iterator latest_ = ranks_.end();  ///< the rank of the latest piece, if it still holds it
  std::map<uint64_t, Ranks::iterator>
      turns_;                           ///< ranks with credit, by the number of their first piece
  std::vector<Ranks::iterator> spent_;  ///< ranks that wait for the next round
};

/// The line that stands for lines that were left out: a record with the source of `next`.
job::LogRecord gap_of(const job::LogRecord& next, uint64_t lines);

}  // namespace muster::cli::logs
