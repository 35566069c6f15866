// What a server says that waits for its turn: it lives, it does nothing, and somebody else leads.
//
// On the EventLoop's thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "http/server.h"

namespace muster::service {

struct Standby {
  std::string version;
  std::string state_folder;
  std::string engine;
  /// The address of the server that leads, as far as is known.
  std::function<std::optional<std::string>()> leader;
  std::function<void()> leave;  ///< told by the server's own user
};

/// Answers every request:
///
///   GET  /healthz        200
///   GET  /v1/info        over the unix socket: this server
///   POST /v1/shutdown    over the unix socket: 202, and leaves
///   others               503 and a problem: "this server waits; muster-1:7443 leads"
http::Handler standby_handler(Standby standby);
/// Reads no body that comes over TLS: the answer is the 503 in any case.
http::Gate standby_gate(Standby standby);

}  // namespace muster::service
