// Detects whether other processes disturbed the measurement.
#pragma once

#include <cstdint>
#include <vector>

namespace bench {

/// How long this thread has been ready to run while another had its core, in nanoseconds so far. A
/// call takes about a microsecond, so it must be outside of the timed code.
std::uint64_t run_queue_wait();

/// Processor time of this process so far, all its threads, in seconds.
double own_processor_time();

/// The total idle time of `cores` so far, in seconds. The kernel counts in hundredths.
double idle_time(const std::vector<int>& cores);

}  // namespace bench
