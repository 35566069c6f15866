// A unix socket of this machine that leads to a socket of another host, by the system's ssh
// (ssh -N -L). The tunnel is restarted when it breaks.
//
// On the loop's thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "base/subprocess.h"
#include "base/unique_fd.h"
#include "engine/container/endpoint.h"

namespace muster::engine {

/// The time limit to open a tunnel, and the pause before the next attempt, which doubles each time.
struct TunnelPatience {
  std::chrono::milliseconds opening{30'000};
  std::chrono::milliseconds first_pause{250};
  std::chrono::milliseconds longest_pause{60'000};
};

class SshTunnel {
 public:
  /// `socket`: the near end, in a private folder of this user. `on_state` is called after each
  /// attempt: the tunnel is open, or why not; it must not drop the tunnel. If the endpoint names no
  /// socket, the usual sockets of the other host are tried once.
  ///
  /// Errors passed to `on_state`: kUnavailable with ssh's last lines; kNotFound: the host has no
  /// engine.
  SshTunnel(base::EventLoop& loop, SshEndpoint endpoint, std::filesystem::path socket,
            std::function<void(Result<void>)> on_state, TunnelPatience patience = {});
  ~SshTunnel();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::engine
