// The server's end of a connection to a muster-node that listens (pod_port.h).
//
// On the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/node/connection.h"
#include "engine/node/messages.h"
#include "engine/node/peer_stream.h"
#include "engine/rsh/secure_channel.h"

namespace muster::engine::node {

struct NodeDial {
  GangId gang;  ///< whose attempt the muster-node was started for: that of its brief
  rsh::Key key{};
  uint64_t stream = 0;  ///< 0: the connection for orders; else a stream that was ordered
};

/// Begins a connection on a stream that leads to the muster-node's port. Calls `then` once, later,
/// within a minute, with a connection whose Hello has arrived. Dropping the result cancels it.
///
/// Errors: kUnavailable: the other end closed the connection; kRefused: it has another key, belongs
/// to another attempt, or is not a muster-node; kTimeout: it does not answer.
[[nodiscard]] std::shared_ptr<void> dial_node(
    base::EventLoop& loop, std::unique_ptr<PeerStream> stream, NodeDial dial,
    std::function<void(base::Result<std::shared_ptr<NodeConnection>>)> then);

}  // namespace muster::engine::node
