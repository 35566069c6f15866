// Which host a process is on, as far as sharing memory goes, and how much of it there is.
#pragma once

#include <cstdint>
#include <string>

namespace muster::collective {

/// The same on two processes that run on one system, in one network namespace and for one user:
/// they can hand each other memory over an abstract socket. Of others no two are the same. A hash
/// in hex; it tells a reader nothing.
std::string find_host_id();

/// Half of the system's memory, at most 64 GiB, and no more than what this process may map for a
/// world of `size` ranks on one host.
std::uint64_t default_arena_bytes(int size);

/// The system's host name.
std::string host_name();

}  // namespace muster::collective
