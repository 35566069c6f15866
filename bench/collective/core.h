// A page of memory that the ranks of a measurement share, independent of the measured library. It
// provides a barrier with the same cost for every library, a probe for the distance of the cores,
// and an exchange of one number per rank.
//
// Ownership: the file belongs to collective.py, which creates it (zeros) and removes it.
// Thread-safety: one thread for each rank.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"

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

  /// The cores of the ranks.
  const std::vector<int>& cores() const { return cores_; }

  /// Returns once every rank has called it. Spins, and yields if ranks share a core.
  void meet();

  /// `help` is called repeatedly once this rank has waited for a millisecond: a library without
  /// threads may still have data to send.
  void while_waiting(std::function<void()> help) { help_ = std::move(help); }

  /// The time in nanoseconds in which a cache line moves from the core of rank 0 to that of rank 1,
  /// measured by ping-pong while the other ranks sleep. Called by all ranks, and equal on all of
  /// them.
  double probe();

  /// Returns rank 0's value on every rank. Called by all ranks.
  double from_first(double value);

  /// The sum or the maximum of the values of all ranks. Called by all ranks.
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

// The contents of the buffers. Each rank writes before every call and compares every byte after it.
// So the data is in the caches of the rank that computed it, as in a training program, and a wrong
// result ends the measurement.
//
// The values are small whole numbers, whose sum is exact in all types. They repeat with a prime
// period, so that a part in the wrong place is detected.

enum class Type { kFloat32, kFloat16, kBFloat16 };

Type type_named(const std::string& name);
std::uint64_t size_of(Type type);

class Pattern {
 public:
  Pattern(Type type, int rank, int ranks);

  /// Moves the pattern by one element, so that every call has other values.
  void advance() { place_ = place_ + element_ == end_ ? 0 : place_ + element_; }

  void write(void* data, std::uint64_t bytes) const;

  /// Whether `data` is the sum of the values that all ranks have written since the last advance().
  bool is_sum(const void* data, std::uint64_t bytes) const;

 private:
  std::uint64_t element_;
  std::uint64_t end_;               // bytes of a period
  std::uint64_t place_ = 0;         // bytes into it
  std::vector<unsigned char> own_;  // some periods, which stay in the first cache
  std::vector<unsigned char> sum_;
};

/// Reads all of the data, if there is nothing to compare it with.
void read_through(const void* data, std::uint64_t bytes);

// The common part of all programs of this benchmark: every library is called in the same loop, with
// the same data, and is timed and judged alike. The differences are in a Subject.
//
// For each size and place (in place or not) there is a burst of calls:
//
//   - the distance of the cores is probed before and after it (Page::probe),
//   - every rank writes its buffer before each call, and reads and verifies the result after it,
//   - all ranks leave a barrier together, and a sample is the time of the slowest rank,
//   - a sample in which a rank waited for its core is dropped; a burst in which other processes
//     used more than a tenth of the cores is repeated,
//   - then all ranks sleep as long as the burst took, since some hosts slow down a guest that
//     spins.
//
// Calls of up to 1 KiB are too short to be timed one by one: a sample is the mean of several
// consecutive calls, including writing and verifying.
//
// Rank 0 prints a line of JSON for each burst.

/// The arguments of all programs.
///
///   --page=PATH  --ranks=N  --rank=R    default of the rank: the launcher's
///   --cores=N                           shared by the ranks; default: 2
///   --type=float32|float16|bfloat16     --places=in,out
///   --sizes=4,1024,...                  bytes
///   --burst=MS                          time in calls for each size, with a minimum of calls
///   --threads=0|1                       whether the library has threads on the rank's core: then
///                                       waiting for the core may be waiting for them, and is not a
///                                       disturbance
struct Plan {
  std::string page;
  int rank = 0;
  int ranks = 2;
  int cores = 2;
  std::string type_name;
  Type type = Type::kFloat32;
  std::vector<std::string> places;
  std::vector<std::uint64_t> sizes;
  double burst_seconds = 0;
  bool has_threads = false;
};

/// Ends the program if it runs with real-time priority or niceness, which users do not have.
Plan plan_from(const Arguments& arguments);

/// The library under test. Empty functions mean the default.
struct Subject {
  using Call = std::function<void()>;

  /// Allocates buffers. Returning null ends the program.
  std::function<void*(std::uint64_t bytes)> allocate = {};
  std::function<void(void*)> release = {};

  /// Returns a call for these buffers, which can be repeated. All ranks prepare at the same time.
  std::function<Call(const void* in, void* out, std::uint64_t bytes)> prepare = {};

  /// Whether the call computes a sum. A measurement of a limit of the machine does not.
  bool is_sum = true;
};

void measure(const Plan& plan, Page& page, const Subject& subject);

}  // namespace bench
