// A connection of this node with its server: it calls, shows the key, says hello, and is then what
// the server's end is, too.
//
// On the loop's thread.
#pragma once

#include <functional>
#include <memory>

#include "base/event_loop.h"
#include "base/unique_fd.h"
#include "engine/rsh/secure_channel.h"
#include "engine/slurm/node_hub.h"
#include "engine/slurm/node_socket.h"

namespace muster::engine::slurm {

class ServerLine : public NodeConnection {
 public:
  /// `socket`: connected to the server. The hello's address is filled in.
  ServerLine(base::EventLoop& loop, base::UniqueFd socket, const rsh::Key& key, const Gang& gang,
             Hello hello);
  ~ServerLine() override { socket_->hang_up(); }

  /// `greeted`: the server has shown the key, and hears from now on. `failed`: why it has not; then
  /// nothing more is called.
  void greet(std::function<void()> greeted, std::function<void(const std::string& why)> failed);

  const Gang& gang() const override { return gang_; }
  const Hello& hello() const override { return hello_; }
  /// REQUIRES: greeted.
  void listen(Handlers handlers) override;
  void send(const NodeMessage& message) override { socket_->send(message); }
  size_t waiting() const override { return socket_->waiting(); }
  void pause(bool paused) override { socket_->pause(paused); }

 private:
  std::shared_ptr<NodeSocket> socket_;
  Gang gang_;
  Hello hello_;
};

}  // namespace muster::engine::slurm
