// The common part of the benchmark of the parameter server and of its peer: the measured calls,
// their number, and the line of output.
//
//   --role=server|worker  --address=HOST:PORT
//   --sizes=1048576,...   bytes
//   --seconds=S           time in calls for each size and direction, with a minimum of calls
//
// The job's key is in MUSTER_RENDEZVOUS_KEY. The worker verifies the received values after each
// size, and prints a line of JSON for each size and direction. The server ends when the worker has
// ended.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "arguments.h"

namespace bench {

/// Repeats the call for `seconds`, and at least five times after a first call that does not count.
/// Prints {"direction": ..., "bytes": ..., "us": [...]}.
void measure_stream(const std::string& direction, std::uint64_t bytes, double seconds,
                    const std::function<void()>& call);

/// Runs the side that --role selects.
void run_side(int argc, char** argv,
              const std::function<void(const std::string& address, const std::string& key)>& serve,
              const std::function<void(const std::string& address, const std::string& key,
                                       const Arguments& arguments)>& work);

/// Ends the program if a value is not `expected`.
void verify(std::span<const float> values, float expected);

}  // namespace bench
