// Messages of node_wire.h over an encrypted socket of the loop; both ends are made of it.
//
// On the loop's thread. Kept by a shared_ptr; whoever it calls may drop it in the midst of that.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/event_loop.h"
#include "base/unique_fd.h"
#include "engine/rsh/secure_channel.h"
#include "engine/slurm/node_wire.h"

namespace muster::engine::slurm {

/// No delay, and an end within half a minute where the other machine is gone or its cable pulled.
void prepare_socket(int socket);

class NodeSocket : public std::enable_shared_from_this<NodeSocket> {
 public:
  struct Handlers {
    std::function<void()> on_established;  ///< both have shown the key: send() from now on
    std::function<void(NodeMessage)> on_message;
    /// Once, and then nothing more. `why` reads behind the name of the other end.
    std::function<void(const std::string& why)> on_end;
    std::function<void()> on_drain;  ///< no more than kHigh waits any more
  };
  static constexpr size_t kHigh = Exec::kHigh;

  /// `socket`: connected. The far end is the server's.
  NodeSocket(base::EventLoop& loop, base::UniqueFd socket, rsh::End end, const rsh::Key& key);

  /// `clear`: what the near end says before anything is encrypted. `received`: what the far end has
  /// read behind that already.
  void begin(Handlers handlers, std::string_view clear, std::string_view received = {});
  /// In the place of those it began with.
  void listen(Handlers handlers) { handlers_ = std::move(handlers); }

  /// REQUIRES: it is established.
  void send(const NodeMessage& message);
  size_t waiting() const { return out_.size(); }
  void pause(bool paused);
  /// Nothing is called any more, and the other end hears of it.
  void hang_up();

  bool is_established() const { return channel_.established(); }
  /// Of this machine, as the other end sees it; empty: it is not known.
  std::string own_address() const;

 private:
  using Method = void (NodeSocket::*)();
  std::function<void()> calling(Method method);
  void wait_for_bytes();
  void read();
  void take(std::string_view bytes);
  void tell_messages();
  void tell_rest();
  void write();
  void write_more();
  void end(const std::string& why);

  base::EventLoop& loop_;
  base::UniqueFd socket_;
  rsh::SecureChannel channel_;
  Handlers handlers_;
  NodeReader reader_;
  base::ByteQueue out_;
  size_t before_key_ = 0;  ///< bytes that came before the other end had shown the key
  bool was_established_ = false;
  bool paused_ = false;
  bool telling_ = false;
  bool is_full_ = false;
  // After socket_: they must go first.
  base::EventLoop::Interest readable_;
  base::EventLoop::Interest writable_;
};

}  // namespace muster::engine::slurm
