// Whether the machine was left to the measurement.
#pragma once

#include <cstdint>
#include <vector>

namespace bench {

/// How long this thread has been ready to run while another had its core, in nanoseconds so far.
/// A reading costs about a microsecond: not inside of what is timed.
std::uint64_t run_queue_wait();

/// Processor time of this process so far, all its threads, in seconds.
double own_processor_time();

/// Seconds that `cores` have been idle so far, all together. The kernel counts in hundredths.
double idle_time(const std::vector<int>& cores);

}  // namespace bench
