// The descriptors of this process: how many are open, and how many it may open.
//
// Thread-safe.
#pragma once

#include <cstdint>

namespace muster::base {

struct Descriptors {
  int64_t open = 0;
  int64_t limit = 0;  ///< the soft limit (RLIMIT_NOFILE)
};

/// Counts the open descriptors in /proc, which takes milliseconds if there are ten thousand.
Descriptors count_descriptors();

/// The soft limit of open files.
int64_t descriptor_limit();

/// Raises the soft limit to the hard limit. Children inherit the new limit, and select() fails on
/// descriptors from 1024 on: only for processes that start no programs of users.
void raise_descriptor_limit();

/// Opens /dev/null as each of 0, 1 and 2 that the caller of this program has closed. Otherwise the
/// next socket or file would get that number, and what is printed would be written there.
void open_standard_streams();

}  // namespace muster::base
