// A port at which the other end of connections calls (connection.h). A caller first sends one line
// in the clear; then both ends prove that they have the key that belongs to it. A caller without
// the key gets no further than the handshake. The number of unfinished handshakes and their time
// are bounded.
//
// On the loop's thread, which a CallerGate must not outlive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/event_loop.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/node/connection.h"
#include "engine/node/messages.h"
#include "engine/rsh/secure_channel.h"

namespace muster::engine::node {

/// How a caller is to prove itself.
struct Admission {
  rsh::End end = rsh::End::kFar;  ///< of this side
  rsh::Key key{};
  std::string clear;  ///< what the near end sends before encryption starts
};

class CallerGate {
 public:
  struct Options {
    std::string bind = "0.0.0.0";
    uint16_t port = 0;       ///< 0: any free port
    std::string whose;       ///< whose calls are expected, for errors: "muster-nodes"
    size_t most = 512;       ///< unfinished handshakes; beyond, the oldest is closed
    bool is_greeted = true;  ///< the caller also sends a first message
    /// Reads the caller's first line, with its newline; nullopt rejects the caller.
    std::function<std::optional<Admission>(std::string_view line)> admit;
    /// A caller has proved itself, and has sent its first message if it sends one. The socket is
    /// paused; it is closed unless this keeps it.
    std::function<void(std::string_view line, std::shared_ptr<NodeSocket>,
                       std::optional<NodeMessage> first)>
        on_caller;
  };

  /// kConflict: the port is in use.
  static base::Result<std::unique_ptr<CallerGate>> open(base::EventLoop& loop, Options options);
  ~CallerGate();

  uint16_t port() const;

 private:
  struct State;
  explicit CallerGate(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

/// A connection from a socket whose handshake is done. The socket is paused until listen().
std::shared_ptr<NodeConnection> connection_on(std::shared_ptr<NodeSocket> socket, GangId gang,
                                              Hello hello);

}  // namespace muster::engine::node
