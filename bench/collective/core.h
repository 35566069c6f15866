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

// What stands in the buffers. Each rank writes before every call and compares every byte after it,
// so that the data is where a training program has it, in the caches of the rank that computed it,
// and so that a wrong result is no figure.
//
// The values are small whole numbers, whose sum every type here holds exactly. They repeat with a
// prime period, so that a part that came to the wrong place does not look right.

enum class Type { kFloat32, kFloat16, kBFloat16 };

Type type_named(const std::string& name);
std::uint64_t size_of(Type type);

class Pattern {
 public:
  Pattern(Type type, int rank, int ranks);

  /// Every call has values of its own: the pattern moves on by an element.
  void advance() { place_ = place_ + element_ == end_ ? 0 : place_ + element_; }

  void write(void* data, std::uint64_t bytes) const;

  /// Whether `data` is the sum of what all ranks wrote since they last advanced.
  bool is_sum(const void* data, std::uint64_t bytes) const;

 private:
  std::uint64_t element_;
  std::uint64_t end_;               // bytes of a period
  std::uint64_t place_ = 0;         // bytes into it
  std::vector<unsigned char> own_;  // some periods, which stay in the first cache
  std::vector<unsigned char> sum_;
};

/// Reads all of it, where there is nothing to compare with.
void read_through(const void* data, std::uint64_t bytes);

// What all programs of this benchmark have in common: every library is called in the same loop,
// over the same data, timed and judged in the same way. What differs is a Subject.
//
// For each size and place (in place or not) there is a burst of calls:
//
//   - the distance of the cores is probed before and after it (Page::probe),
//   - every rank writes its buffer before each call, and reads and verifies the result after it,
//   - all ranks leave a barrier together, and a sample is the time of the slowest of them,
//   - a sample in which a rank waited for its core is dropped; a burst in which other processes
//     used more than a tenth of the cores is repeated,
//   - then all ranks sleep as long as the burst took: some hosts slow down a guest that spins.
//
// Calls of up to 1 KiB are too short for a look at the clock each: a sample is the mean of several,
// one after the other, writing and verifying included.
//
// Rank 0 prints a line of JSON for each burst.

/// The words that all programs understand.
///
///   --page=PATH  --ranks=N  --rank=R    the rank is the launcher's where it is left out
///   --cores=N                           that the ranks share; 2 if left out
///   --type=float32|float16|bfloat16     --places=in,out
///   --sizes=4,1024,...                  bytes
///   --burst=MS                          time in calls for each size, where that is not too few
///   --threads=0|1                       whether the library has threads on the rank's core: then
///                                       a wait for the core may be for them, and disturbs nothing
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

/// Ends the program where it runs with real-time priority or niceness: no user does.
Plan plan_from(const Arguments& arguments);

/// The library under test. What is left out is the usual thing.
struct Subject {
  using Call = std::function<void()>;

  /// Where buffers come from; may be null once there are no more, which ends the program.
  std::function<void*(std::uint64_t bytes)> allocate = {};
  std::function<void(void*)> release = {};

  /// Makes a call for these buffers, to be repeated. All ranks prepare at the same time.
  std::function<Call(const void* in, void* out, std::uint64_t bytes)> prepare = {};

  /// Whether the call sums. What measures a limit of the machine does not.
  bool is_sum = true;
};

void measure(const Plan& plan, Page& page, const Subject& subject);

}  // namespace bench
