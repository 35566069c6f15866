// A unix socket of this machine that leads to one of another, by the system's ssh
// (ssh -N -L), held as long as it is wanted and started again when it breaks.
//
// On the loop's thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/container/endpoint.h"

namespace muster::engine {

/// How long a tunnel may take, and how long is waited before the next try: twice as long each time.
struct TunnelPatience {
  std::chrono::milliseconds opening{30'000};
  std::chrono::milliseconds first_pause{250};
  std::chrono::milliseconds longest_pause{60'000};
};

class SshTunnel {
 public:
  /// `socket`: the near end, in a folder of this user's alone. `on_state`: it is open, or why not;
  /// again after each try. It must not drop the tunnel. Where the endpoint names no socket, the
  /// other host is asked once for the usual ones.
  ///
  /// Errors that are told: kUnavailable with ssh's own last lines; kNotFound: no engine is there.
  SshTunnel(base::EventLoop& loop, SshEndpoint endpoint, std::filesystem::path socket,
            std::function<void(Result<void>)> on_state, TunnelPatience patience = {});
  ~SshTunnel();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::engine
