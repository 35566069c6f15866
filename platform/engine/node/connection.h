// Connections between the server and its muster-nodes, encrypted with the key of the attempt.
//
// NodeHub is the server's end: it listens, and passes on each muster-node that proves that it has
// the key of an attempt known to the server (callers.h). NodeSocket carries the messages of
// messages.h over one socket; both ends use it.
//
// On the loop's thread, which a NodeHub must not outlive.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/event_loop.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/node/messages.h"
#include "engine/node/peer_stream.h"
#include "engine/rsh/secure_channel.h"

namespace muster::engine::node {

/// A connection with the other end, after the handshake. Destroying it closes the connection.
class NodeConnection {
 public:
  struct Handlers {
    std::function<void(NodeMessage)> on_message;
    /// Called once, as the last handler: the connection was closed, or the other end has sent
    /// something that is not a message.
    std::function<void(const std::string& why)> on_end;
    std::function<void()> on_drain = {};  ///< fewer than kHigh bytes wait to be sent
  };
  static constexpr size_t kHigh = Exec::kHigh;

  virtual ~NodeConnection() = default;
  virtual const GangId& gang() const = 0;
  virtual const Hello& hello() const = 0;
  /// Nothing is read before this is called.
  virtual void listen(Handlers handlers) = 0;
  virtual void send(const NodeMessage& message) = 0;
  virtual size_t waiting() const = 0;  ///< bytes that have not been sent yet
  /// Stops or continues reading.
  virtual void pause(bool paused) = 0;
};

struct HubOptions {
  std::string bind = "0.0.0.0";
  uint16_t port = 0;  ///< 0: any free port
  /// The key of an attempt; nullopt: the attempt is unknown or over.
  std::function<std::optional<rsh::Key>(const GangId&)> key_of;
  /// Called after a muster-node's Hello. The connection is closed unless this keeps it.
  std::function<void(std::shared_ptr<NodeConnection>)> on_connection;
};

class NodeHub {
 public:
  /// kConflict: the port is in use.
  static base::Result<std::unique_ptr<NodeHub>> open(base::EventLoop& loop, HubOptions options);
  ~NodeHub();

  uint16_t port() const;

 private:
  struct Impl;
  explicit NodeHub(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Messages over an encrypted stream. Held by a shared_ptr; a handler may drop it while it runs.
class NodeSocket : public std::enable_shared_from_this<NodeSocket> {
 public:
  struct Handlers {
    std::function<void()> on_established;  ///< the handshake is done: send() may be called
    std::function<void(NodeMessage)> on_message;
    /// Called once, as the last handler. `why` completes a sentence about the other end.
    std::function<void(const std::string& why)> on_end;
    std::function<void()> on_drain;  ///< at most kHigh bytes wait to be sent
  };
  static constexpr size_t kHigh = PeerStream::kHigh;

  /// The far end is the server's.
  NodeSocket(base::EventLoop& loop, std::unique_ptr<PeerStream> stream, rsh::End end,
             const rsh::Key& key);
  /// `socket`: connected.
  NodeSocket(base::EventLoop& loop, base::UniqueFd socket, rsh::End end, const rsh::Key& key);

  /// `clear`: what the near end sends before encryption starts. `received`: what the far end has
  /// already read after the clear line.
  void begin(Handlers handlers, std::string_view clear, std::string_view received = {});
  /// Replaces the handlers.
  void listen(Handlers handlers) { handlers_ = std::move(handlers); }

  /// REQUIRES: is_established().
  void send(const NodeMessage& message);
  size_t waiting() const;
  void pause(bool paused);
  /// Closes the connection; calls no handler.
  void hang_up();

  bool is_established() const { return channel_.established(); }
  /// This machine's address as the other end sees it; empty: unknown.
  std::string own_address() const;

 private:
  void take(std::string_view bytes);
  bool deliver_messages();
  void deliver_rest_later();
  void deliver_rest();
  void ended(const std::string& why);
  void end(const std::string& why);

  base::EventLoop& loop_;
  std::unique_ptr<PeerStream> stream_;  ///< null: the connection is over
  rsh::SecureChannel channel_;
  Handlers handlers_;
  NodeReader reader_;
  size_t before_key_ = 0;  ///< bytes received before the handshake was done
  bool was_established_ = false;
  bool paused_ = false;
  bool in_handler_ = false;             ///< a handler is running
  std::optional<std::string> far_end_;  ///< why nothing more comes from there
};

}  // namespace muster::engine::node
