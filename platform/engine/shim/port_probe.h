// Asks the port of this very task until a remote shell's server greets there: the launcher may
// start then.
//
// The port is bound and listened on before, so each connection is taken; one that ends without a
// greeting is tried again after a pause.
//
// Owned and called by one thread, the one that polls: watch() before, serve() after.
#pragma once

#include <poll.h>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace muster::engine {

class PortProbe {
 public:
  using Steady = std::chrono::steady_clock;

  /// `bound`: the address that is listened on; 0.0.0.0 is asked on 127.0.0.1.
  void start(const std::string& bound, int port);

  /// Appends what is to be polled.
  void watch(std::vector<pollfd>& polled) const;
  /// How long poll(2) may wait at most; -1: until something comes.
  int milliseconds_to_wait() const;
  /// What watch() appended, polled. True, once: it has greeted.
  bool serve(std::span<const pollfd> polled);

 private:
  void connect();
  bool hear();
  void retry();

  std::string address_;
  int port_ = 0;
  base::UniqueFd socket_;
  std::string heard_;
  std::optional<Steady::time_point> again_at_;
};

}  // namespace muster::engine
