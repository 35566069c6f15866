#include "engine/node/peer_stream.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"

namespace muster::engine::node {

namespace {

constexpr size_t kReadAtOnce = 64 << 10;

void set_socket_option(int socket, int level, int option, int value) {
  ::setsockopt(socket, level, option, &value, sizeof value);
}

void prepare_socket(int socket) {
  constexpr int kIdleSeconds = 10;
  constexpr int kProbeSeconds = 5;
  constexpr int kProbes = 4;
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
  set_socket_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_socket_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_socket_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  set_socket_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
  set_socket_option(socket, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

/// Whether all sent data is acknowledged, and the rest waits for the other end to read.
bool waits_for_window(int socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  return ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_unacked == 0;
}

/// The bytes that the other end has not acknowledged, sent or not.
int unacknowledged_bytes(int socket) {
  int bytes = 0;
  return ::ioctl(socket, SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

/// What a stream on a socket consists of. A handler may drop the stream while it runs, so each call
/// holds a reference.
class SocketEnds : public std::enable_shared_from_this<SocketEnds> {
 public:
  SocketEnds(base::EventLoop& loop, base::UniqueFd socket, const PeerPatience& patience)
      : loop_(loop), patience_(patience), socket_(std::move(socket)) {
    limit_unacknowledged(true);
  }

  void listen(PeerStream::Handlers handlers) {
    handlers_ = std::move(handlers);
    has_listener_ = true;
    read_on();
  }

  void pause(bool paused) {
    paused_ = paused;
    paused ? readable_.reset() : read_on();
  }

  void write(std::string_view bytes) {
    if (!socket_) return;
    out_.add(bytes);
    if (!writable_) return write_out();
    is_full_ = is_full_ || out_.size() > PeerStream::kHigh;
  }

  void hang_up() {
    handlers_ = {};
    readable_.reset();
    writable_.reset();
    look_.reset();
    socket_.reset();
  }

  size_t waiting() const { return out_.size(); }
  int socket() const { return socket_.get(); }

 private:
  void read_on() {
    if (!socket_ || !has_listener_ || paused_ || readable_) return;
    readable_ = loop_.when_readable(socket_.get(), [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->read();
    });
  }

  void read() {
    static std::array<char, kReadAtOnce> piece;
    const ssize_t count = ::recv(socket_.get(), piece.data(), piece.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count == 0) return end("");
    if (count < 0) return end(base::system_error("is out of reach", errno).what);
    const auto on_bytes = handlers_.on_bytes;
    if (on_bytes) on_bytes({piece.data(), static_cast<size_t>(count)});
  }

  void write_out() {
    writable_.reset();  // before its descriptor is closed
    if (!socket_) return;
    while (!out_.empty()) {
      const ssize_t count = ::send(socket_.get(), out_.front().data(), out_.size(), MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      // The other end's last bytes may still be unread: recv() reports the end after them.
      if (count < 0 && errno != EAGAIN) out_.clear();
      if (count < 0) break;
      out_.take(static_cast<size_t>(count));
    }
    is_full_ = is_full_ || out_.size() > PeerStream::kHigh;
    look_later();
    if (out_.empty()) return;
    writable_ = loop_.when_writable(socket_.get(), [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->write_more();
    });
  }

  /// on_drain is never called within write(): its handler writes more.
  void write_more() {
    write_out();
    if (!is_full_ || out_.size() > PeerStream::kHigh) return;
    is_full_ = false;
    const auto on_drain = handlers_.on_drain;
    if (on_drain) on_drain();
  }

  // No keepalive probes are sent while data is unacknowledged, so that has a timeout of its own. The
  // kernel (6.18) also counts the time during which the other end has no room for more, although that
  // end acknowledges every probe of its window. So the limit is lifted for as long as this lasts.

  void limit_unacknowledged(bool limited) {
    const int limit = limited ? static_cast<int>(patience_.unacknowledged.count()) : 0;
    set_socket_option(socket_.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, limit);
  }

  void look_later() {
    if (look_) return;
    look_ = loop_.after(patience_.look, [this] { look(); });
  }

  void look() {
    look_.reset();
    const bool is_sending = unacknowledged_bytes(socket_.get()) > 0;
    limit_unacknowledged(!is_sending || !waits_for_window(socket_.get()));
    if (is_sending) look_later();
  }

  void end(const std::string& why) {
    const auto on_end = std::exchange(handlers_.on_end, nullptr);
    hang_up();
    if (on_end) on_end(why);
  }

  base::EventLoop& loop_;
  const PeerPatience patience_;
  base::UniqueFd socket_;
  PeerStream::Handlers handlers_;
  base::ByteQueue out_;
  bool has_listener_ = false;
  bool paused_ = false;
  bool is_full_ = false;  ///< more than kHigh bytes waited: on_drain is due
  // After socket_: destroyed first.
  base::EventLoop::Interest readable_;
  base::EventLoop::Interest writable_;
  base::EventLoop::Interest look_;  ///< while bytes are unacknowledged
};

std::string address_of_socket(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return "";
  const void* number = nullptr;
  if (address.ss_family == AF_INET) {
    number = &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  } else if (address.ss_family == AF_INET6) {
    number = &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  }
  if (number == nullptr) return "";
  return ::inet_ntop(address.ss_family, number, text.data(), text.size()) == nullptr ? ""
                                                                                     : text.data();
}

class SocketStream : public PeerStream {
 public:
  SocketStream(base::EventLoop& loop, base::UniqueFd socket, const PeerPatience& patience)
      : ends_(std::make_shared<SocketEnds>(loop, std::move(socket), patience)) {}
  ~SocketStream() override { ends_->hang_up(); }
  SocketStream(const SocketStream&) = delete;
  SocketStream& operator=(const SocketStream&) = delete;

  void listen(Handlers handlers) override { ends_->listen(std::move(handlers)); }
  void write(std::string_view bytes) override { ends_->write(bytes); }
  size_t waiting() const override { return ends_->waiting(); }
  void pause(bool paused) override { ends_->pause(paused); }
  std::string own_address() const override { return address_of_socket(ends_->socket()); }

 private:
  std::shared_ptr<SocketEnds> ends_;
};

}  // namespace

std::unique_ptr<PeerStream> stream_on(base::EventLoop& loop, base::UniqueFd socket,
                                      const PeerPatience& patience) {
  prepare_socket(socket.get());
  return std::make_unique<SocketStream>(loop, std::move(socket), patience);
}

}  // namespace muster::engine::node
