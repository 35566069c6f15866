// What this process costs the machine, as the kernel counts it.
//
// Thread-safe (no state).
#pragma once

#include <cstdint>

namespace muster::server {

struct ProcessFigures {
  double cpu_seconds = 0;  ///< of all its threads, in user and kernel mode
  int64_t resident_bytes = 0;
  int64_t virtual_bytes = 0;
  int open_descriptors = 0;
  int64_t most_descriptors = 0;
  double started = 0;  ///< seconds since the Unix epoch
};

/// What cannot be read is 0.
ProcessFigures process_figures();

}  // namespace muster::server
