// Bounded staleness (Ho et al., "More effective distributed ML via a stale synchronous parallel
// parameter server", NIPS 2013): each worker has a clock, the number of steps it has pushed; none
// may work in a step that is more than `bound` past that of the slowest worker.
//
// With bound 0 everyone pulls only after everyone has pushed the step before: synchronous. Without
// a bound nobody waits: asynchronous. A worker that is gone holds nobody up; one that comes late
// begins with the slowest.
//
// Pure: a table of numbers. Who waits, and how, is the roster's concern.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

namespace muster::parameter_server {

class Clocks {
 public:
  /// Nobody may proceed before `expected` different workers have come.
  Clocks(std::optional<std::uint64_t> bound, int expected) : bound_(bound), expected_(expected) {}

  /// The step that the worker begins in. It must not be there yet.
  std::uint64_t join(int worker);

  void leave(int worker);

  /// The worker has pushed its step.
  void advance(int worker);

  bool may_proceed(int worker) const;

  /// All who were expected have come, be they still there or not.
  bool is_complete() const { return static_cast<int>(seen_.size()) >= expected_; }

  /// Those that are there, with their clocks.
  const std::map<int, std::uint64_t>& present() const { return clocks_; }

 private:
  std::uint64_t slowest() const;

  std::optional<std::uint64_t> bound_;
  int expected_;
  std::map<int, std::uint64_t> clocks_;
  std::set<int> seen_;
  std::uint64_t last_slowest_ = 0;  // of those that are gone, for who comes when nobody is there
};

}  // namespace muster::parameter_server
