// Asks a task's port until a remote shell's server greets there: an sshd, or Muster's own.
//
// On the EventLoop's thread. Dropping the probe ends it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/event_loop.h"
#include "base/unique_fd.h"

namespace muster::engine {

class SshProbe {
 public:
  /// Calls `answered` once, when a greeting has come (shim/greeting.h). A connection that ends
  /// without one is tried again after a while; the caller sets the bound by dropping the probe.
  SshProbe(base::EventLoop& loop, std::string address, int port, std::function<void()> answered);

 private:
  void connect();
  void connected();
  void hear();
  void retry();

  base::EventLoop& loop_;
  std::string address_;
  int port_;
  std::function<void()> answered_;
  std::string heard_;
  base::UniqueFd socket_;
  base::EventLoop::Interest interest_;  ///< after socket_: must go first
};

}  // namespace muster::engine
