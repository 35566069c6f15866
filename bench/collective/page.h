// A page that the ranks of one measurement share, beside the library that is measured: a barrier
// which costs every library the same, a probe for the distance of the cores, and one number from
// each rank.
//
// Ownership: the file belongs to collective.py, which makes it (zeros) and removes it.
// Thread-safety: one thread a rank.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

inline constexpr int kMostRanks = 16;
inline constexpr std::uint64_t kPageBytes = 8192;

class Page {
 public:
  /// Maps the file and pins this process to one of the first `cores` cores that it may use:
  /// rank r to the core r modulo their number.
  Page(const std::string& path, int rank, int ranks, int cores);
  ~Page();
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  bool is_crowded() const { return ranks_ > static_cast<int>(cores_.size()); }

  /// The cores that the ranks are on.
  const std::vector<int>& cores() const { return cores_; }

  /// Returns once every rank is here. Spins; yields as well where ranks share a core.
  void meet();

  /// What a rank does again and again once it has waited a millisecond for the others: a library
  /// without threads may have something left to send.
  void while_waiting(std::function<void()> help) { help_ = std::move(help); }

  /// The time that a cache line takes from the core of rank 0 to that of rank 1, in nanoseconds, by
  /// ping-pong; the others sleep meanwhile. Called by all ranks, and the same on all.
  double probe();

  /// What rank 0 says, on every rank. Called by all.
  double from_first(double value);

  /// The sum or the largest of what all ranks say. Called by all.
  double sum(double value);
  double largest(double value);

 private:
  struct Line;
  struct Memory;
  void post(double value);
  void bounce(int turns);

  Memory* memory_ = nullptr;
  std::uint64_t turn_ = 0;  // barriers so far
  std::uint64_t ball_ = 0;  // bounces so far
  int rank_;
  int ranks_;
  std::vector<int> cores_;
  std::function<void()> help_;
};

}  // namespace bench
