// A unix socket of this machine that leads to one of another, by the system's ssh
// (ssh -N -L), held as long as it is wanted and started again when it breaks.
//
// On the loop's thread.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/container/endpoint.h"

namespace muster::engine {

class SshTunnel {
 public:
  /// `socket`: the near end, in a folder of this user's alone. `on_state`: it is open, or why not.
  SshTunnel(base::EventLoop& loop, SshEndpoint endpoint, std::filesystem::path socket,
            std::function<void(Result<void>)> on_state);
  ~SshTunnel();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::engine
