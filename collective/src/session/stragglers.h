// Finds the rank or the connection that the other ranks of a session wait for. Rank 0 judges one
// window of some seconds after the other.
//
// Ranks. An operation starts when its last rank has handed it over. Between the last rank but one
// and the last, all others wait for that rank. Waits of several operations that overlap count once.
// A rank is slow if the others waited for it for kSlowShare of the window, if that was kMostly of
// their waits for one rank, and if it was kNoticeable later than the others in the mean.
//
// Links. Each rank reports how many bytes it has sent to each rank over TCP, and in how much of the
// window such bytes were on their way (transport/socket.h). A slow link delays every rank of a ring,
// but the other links are idle in between: the speed of a link is its bytes divided by the time in
// which it was busy. A link is slow if it was busy for kMostlyBusy of the window, at less than
// kSlowSpeed of the median speed of links between other ranks that carried as much.
//
// The receiver of a slow link ends every operation last, and hands over the next one last. So a
// slow rank is not named in a window with a slow link.
//
// Pure: time comes in as an argument. Thread-safety: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "session/protocol.h"
#include "transport/socket.h"

namespace muster::collective::session {

inline constexpr double kSlowShare = 0.25;
inline constexpr double kMostly = 0.8;
inline constexpr std::chrono::milliseconds kNoticeable{1};
inline constexpr std::uint64_t kFewestOperations = 20;
inline constexpr double kMostlyBusy = 0.5;
inline constexpr double kSlowSpeed = 0.5;
inline constexpr double kComparable = 0.25;  // of the bytes of the link that is judged
inline constexpr std::uint64_t kFewestBytes = std::uint64_t{1} << 20U;

/// What the others waited for a rank in a window.
struct RankDelay {
  int rank = 0;
  double share = 0;                  // of the window
  std::uint64_t operations = 0;      // whose last rank it was
  std::chrono::nanoseconds mean{0};  // after the last rank but one
};

/// The use of the connections from one rank to another in a window.
struct LinkSpeed {
  int from = 0;
  int to = 0;
  std::uint64_t bytes = 0;
  double share = 0;  // of the window in which it was busy
  double bytes_per_second = 0;
};

struct Slowness {
  std::chrono::nanoseconds window{0};
  std::uint64_t operations = 0;
  std::vector<RankDelay> ranks;  // that the others waited for, by rank
  std::vector<LinkSpeed> links;  // that carried kFewestBytes, by sender and receiver
  std::optional<RankDelay> slow_rank;
  std::optional<LinkSpeed> slow_link;
  double usual_bytes_per_second = 0;  // the median of the links that slow_link was compared with

  /// Whether the window before had another slow rank or link, or none.
  bool slow_rank_is_new = false;
  bool slow_link_is_new = false;
};

class Stragglers {
 public:
  /// `window` zero: never judges.
  Stragglers(int size, std::chrono::milliseconds window);

  /// `last` handed over an operation at `now`, and the last of the other ranks at `before`. The
  /// times `now` of successive calls usually do not decrease.
  void completed(int last, Deadline before, Deadline now);

  void take(int from, const LinkReport& report);

  /// Once the window has ended: judges it, and begins the next one.
  std::optional<Slowness> judge(Deadline now);

 private:
  struct Waits {
    std::chrono::nanoseconds alone{0};  // overlaps counted once
    std::chrono::nanoseconds sum{0};
    std::uint64_t operations = 0;
    Deadline counted_until = {};
  };
  struct Use {
    std::uint64_t bytes = 0;
    std::chrono::microseconds busy{0};
    std::chrono::microseconds reported{0};  // the time that the reports cover
  };

  void judge_ranks(Slowness& slowness) const;
  void judge_links(Slowness& slowness) const;

  std::chrono::milliseconds window_;
  std::optional<Deadline> begun_;
  std::uint64_t operations_ = 0;
  std::vector<Waits> waits_;                 // by rank
  std::map<std::pair<int, int>, Use> uses_;  // by sender and receiver
  std::optional<int> slow_rank_;             // of the last window, as is slow_link_
  std::optional<std::pair<int, int>> slow_link_;
};

/// A slow rank or link, for people.
struct Finding {
  const char* what;  // SLOW_RANK, SLOW_LINK: its mark in the timeline
  bool is_new;
  std::string sentence;  // "rank 2 on host b is slow: ..."
};
/// `hosts` by rank.
std::vector<Finding> findings(const Slowness& slowness, const std::vector<std::string>& hosts);

/// For Muster's metrics, a report a text (docs/metrics.md): "rank=2 waited_for_percent=46.1".
std::vector<std::string> metrics(const Slowness& slowness);

}  // namespace muster::collective::session
