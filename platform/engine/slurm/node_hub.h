// Where the programs on Slurm's nodes (muster-node) call the server back (node_wire.h).
//
// On the loop's thread, which it must not outlive. Whoever does not know the key of an attempt that
// is known here gets no further than the handshake; how many such connections wait, and how long,
// is bounded.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/rsh/secure_channel.h"
#include "engine/slurm/node_wire.h"

namespace muster::engine::slurm {

/// A connection with a muster-node that has shown its key. Dropping it hangs up.
class NodeConnection {
 public:
  struct Handlers {
    std::function<void(NodeMessage)> on_message;
    /// Once, and then nothing more: it was hung up, or what came was no message.
    std::function<void(const std::string& why)> on_end;
    std::function<void()> on_drain = {};  ///< less than kHigh waits to be sent
  };
  static constexpr size_t kHigh = Exec::kHigh;

  virtual ~NodeConnection() = default;
  virtual const Gang& gang() const = 0;
  virtual const Hello& hello() const = 0;
  /// Nothing is read before there are handlers.
  virtual void listen(Handlers handlers) = 0;
  virtual void send(const NodeMessage& message) = 0;
  virtual size_t waiting() const = 0;  ///< bytes that were not sent yet
  /// Reads no more for the moment.
  virtual void pause(bool paused) = 0;
};

struct HubOptions {
  std::string bind = "0.0.0.0";
  uint16_t port = 0;  ///< 0: any that is free
  /// The key of an attempt; nullopt: it is none of ours, or over.
  std::function<std::optional<rsh::Key>(const Gang&)> key_of;
  /// One has said hello. Whoever does not keep it hangs up.
  std::function<void(std::shared_ptr<NodeConnection>)> on_connection;
};

class NodeHub {
 public:
  /// kConflict: the port is taken.
  static base::Result<std::unique_ptr<NodeHub>> open(base::EventLoop& loop, HubOptions options);
  ~NodeHub();

  uint16_t port() const;

 private:
  struct State;
  explicit NodeHub(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace muster::engine::slurm
