#include "engine/slurm/node_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace muster::engine::slurm {

namespace {

// A handshake takes some 500.
constexpr size_t kMostBeforeKey = 8 << 10;
constexpr size_t kPiece = 64 << 10;
/// In a turn of the loop: others have theirs.
constexpr int kMessagesATurn = 256;

void set_option(int socket, int level, int option, int value) {
  ::setsockopt(socket, level, option, &value, sizeof value);
}

}  // namespace

void prepare_socket(int socket) {
  constexpr int kIdleSeconds = 10;
  constexpr int kProbeSeconds = 5;
  constexpr int kProbes = 4;
  constexpr int kUserTimeoutMs = (kIdleSeconds + kProbes * kProbeSeconds) * 1000;
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  // While something waits to be acknowledged no probe is sent.
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs);
}

NodeSocket::NodeSocket(base::EventLoop& loop, base::UniqueFd socket, rsh::End end,
                       const rsh::Key& key)
    : loop_(loop), socket_(std::move(socket)), channel_(end, key) {
  prepare_socket(socket_.get());
}

void NodeSocket::begin(Handlers handlers, std::string_view clear, std::string_view received) {
  handlers_ = std::move(handlers);
  out_.add(clear);
  out_.add(channel_.take_encrypted());
  write();
  if (!received.empty()) take(received);
  if (socket_ && !paused_) wait_for_bytes();
}

/// Whoever is called back may drop this in the midst of it: hence the hold on it.
std::function<void()> NodeSocket::calling(Method method) {
  return [weak = weak_from_this(), method] {
    if (const auto self = weak.lock()) ((*self).*method)();
  };
}

void NodeSocket::wait_for_bytes() {
  readable_ = loop_.when_readable(socket_.get(), calling(&NodeSocket::read));
}

void NodeSocket::read() {
  static std::array<char, kPiece> piece;
  // The last of the handshake and the first of what follows may come at once.
  const size_t most = was_established_ ? piece.size() : kMostBeforeKey - before_key_;
  const ssize_t count = ::recv(socket_.get(), piece.data(), most, 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count == 0) return end("has hung up");
  if (count < 0) return end(base::system_error("is out of reach", errno).what);
  take({piece.data(), static_cast<size_t>(count)});
}

void NodeSocket::take(std::string_view bytes) {
  if (!was_established_) before_key_ += bytes.size();
  const auto received = channel_.receive(bytes);
  reader_.add(channel_.take_plain());
  out_.add(channel_.take_encrypted());
  if (!writable_) write();  // else whoever waits for room would not hear of it
  if (!received) return end(received.error().what);
  if (!socket_) return;
  if (!channel_.established()) {
    if (before_key_ >= kMostBeforeKey) end("has another key");
    return;
  }
  if (!std::exchange(was_established_, true)) {
    const auto on_established = handlers_.on_established;
    if (on_established) on_established();
  }
  tell_messages();
}

void NodeSocket::tell_messages() {
  if (std::exchange(telling_, true)) return;
  int told = 0;
  while (socket_ && !paused_ && told < kMessagesATurn) {
    auto message = reader_.next();
    if (!message) {
      telling_ = false;
      return end("says what cannot be understood");
    }
    if (!*message) break;
    ++told;
    const auto on_message = handlers_.on_message;
    if (on_message) on_message(**std::move(message));
  }
  telling_ = false;
  if (told < kMessagesATurn) return;
  readable_.reset();
  loop_.post(calling(&NodeSocket::tell_rest));
}

void NodeSocket::tell_rest() {
  if (!socket_ || paused_) return;
  tell_messages();
  if (socket_ && !paused_ && !readable_) wait_for_bytes();
}

void NodeSocket::send(const NodeMessage& message) {
  if (!socket_) return;
  channel_.send(encode_node(message));
  out_.add(channel_.take_encrypted());
  if (!writable_) return write();
  is_full_ = is_full_ || out_.size() > kHigh;
}

void NodeSocket::write() {
  writable_.reset();  // an interest holds its descriptor: it goes before that is closed
  if (!socket_) return;
  while (!out_.empty()) {
    const ssize_t count = ::send(socket_.get(), out_.front().data(), out_.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    // What the other end said before it went may still be there to be read: recv() tells.
    if (count < 0 && errno != EAGAIN) out_.clear();
    if (count < 0) break;
    out_.take(static_cast<size_t>(count));
  }
  is_full_ = is_full_ || out_.size() > kHigh;
  if (out_.empty()) return;
  writable_ = loop_.when_writable(socket_.get(), calling(&NodeSocket::write_more));
}

/// Never told within a send(): whoever is told sends more.
void NodeSocket::write_more() {
  write();
  if (!is_full_ || out_.size() > kHigh) return;
  is_full_ = false;
  const auto on_drain = handlers_.on_drain;
  if (on_drain) on_drain();
}

void NodeSocket::pause(bool paused) {
  if (std::exchange(paused_, paused) == paused || !socket_) return;
  readable_.reset();
  if (!paused) loop_.post(calling(&NodeSocket::tell_rest));
}

void NodeSocket::hang_up() {
  handlers_ = {};
  readable_.reset();
  writable_.reset();
  socket_.reset();
}

void NodeSocket::end(const std::string& why) {
  const auto on_end = std::exchange(handlers_.on_end, nullptr);
  hang_up();
  if (on_end) on_end(why);
}

std::string NodeSocket::own_address() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) return "";
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

}  // namespace muster::engine::slurm
