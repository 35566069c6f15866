// What ours and the peer of the parameter server's benchmark have in common: what is measured, how
// often, and the line that says it.
//
//   --role=server|worker  --address=HOST:PORT
//   --sizes=1048576,...   bytes
//   --seconds=S           in calls for each size and direction, where that is not too few
//
// The job's key comes in MUSTER_RENDEZVOUS_KEY. The worker verifies what arrived after each size,
// and prints a line of JSON for each size and direction. The server ends when the worker has.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "arguments.h"

namespace bench {

/// Calls as often as `seconds` say, the first one uncounted (at least five are counted), and prints
/// {"direction": ..., "bytes": ..., "us": [...]}.
void measure_stream(const std::string& direction, std::uint64_t bytes, double seconds,
                    const std::function<void()>& call);

/// Runs the side that --role names.
void run_side(int argc, char** argv,
              const std::function<void(const std::string& address, const std::string& key)>& serve,
              const std::function<void(const std::string& address, const std::string& key,
                                       const Arguments& arguments)>& work);

/// Ends the program where a value is not `expected`.
void verify(std::span<const float> values, float expected);

}  // namespace bench
