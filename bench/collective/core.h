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
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "arguments.h"
#include "page.h"
#include "pattern.h"

namespace bench {

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
