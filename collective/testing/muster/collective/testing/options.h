// The options of worlds for tests: N ranks as N threads of one process, which meet over real
// sockets on 127.0.0.1.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "muster/collective/bootstrap.h"

namespace muster::collective::testing {

/// Far longer than any test takes, and far shorter than the test runner's own limit.
inline constexpr std::chrono::milliseconds kPatience{30'000};

/// Which ranks of a test world count as ranks of one host, and share memory.
struct Placement {
  int ranks_per_host;

  static Placement one_host() { return {1 << 20}; }
  static Placement host_each() { return {1}; }
};

/// The options of a world whose rendezvous is already open, on a free port that rank 0's options
/// hold as a listener. The address is the test process's own (one of 127.0.0.0/8), so that no test
/// that runs at the same time can take the port once it is closed. Rank r is called "host-r" on any
/// host. Arenas have 64 MiB. Each element of the result is for one connect().
///
/// The ranks may be silent for kPatience, since the threads of a busy machine may wait for long. A
/// test that stops a rank resets Options::silence.
std::vector<Options> world_of(int size, std::chrono::milliseconds timeout = kPatience,
                              Placement placement = Placement::one_host());

/// Runs body(0) .. body(count - 1) at the same time, each on a thread, and waits for all of them.
void on_threads(int count, const std::function<void(int)>& body);

}  // namespace muster::collective::testing
