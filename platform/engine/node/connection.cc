#include "engine/node/connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/unique_fd.h"
#include "engine/node/callers.h"

namespace muster::engine::node {

namespace {

// A handshake needs about 500 bytes.
constexpr size_t kMostBeforeKey = 8 << 10;
constexpr size_t kPiece = 64 << 10;
/// The most bytes read in one turn of the loop, so that other connections have their turn.
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
  // No keepalive probes are sent while data is unacknowledged, so that has a timeout of its own.
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

/// A handler may drop the socket while it runs, so the call holds a reference.
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
  // The end of the handshake and the first message may arrive together.
  const size_t most = was_established_ ? piece.size() : kMostBeforeKey - before_key_;
  const ssize_t count = ::recv(socket_.get(), piece.data(), most, 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count == 0) return end("closed the connection");
  if (count < 0) return end(base::system_error("cannot be reached", errno).what);
  take({piece.data(), static_cast<size_t>(count)});
}

void NodeSocket::take(std::string_view bytes) {
  if (!was_established_) before_key_ += bytes.size();
  const auto received = channel_.receive(bytes);
  reader_.add(channel_.take_plain());
  out_.add(channel_.take_encrypted());
  if (!writable_) write();  // otherwise on_drain would never be called
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
  if (std::exchange(in_handler_, true)) return;
  int told = 0;
  while (socket_ && !paused_ && told < kMessagesATurn) {
    auto message = reader_.next();
    if (!message) {
      in_handler_ = false;
      return end("sent a malformed message");
    }
    if (!*message) break;
    ++told;
    const auto on_message = handlers_.on_message;
    if (on_message) on_message(**std::move(message));
  }
  in_handler_ = false;
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
  writable_.reset();  // before its descriptor is closed
  if (!socket_) return;
  while (!out_.empty()) {
    const ssize_t count = ::send(socket_.get(), out_.front().data(), out_.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    // The other end's last messages may still be unread: recv() reports the end after them.
    if (count < 0 && errno != EAGAIN) out_.clear();
    if (count < 0) break;
    out_.take(static_cast<size_t>(count));
  }
  is_full_ = is_full_ || out_.size() > kHigh;
  if (out_.empty()) return;
  writable_ = loop_.when_writable(socket_.get(), calling(&NodeSocket::write_more));
}

/// on_drain is never called within send(): its handler sends more.
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

// --- the server's port

struct NodeHub::Impl {
  HubOptions options;
  std::unique_ptr<CallerGate> gate;

  std::optional<Admission> admit(std::string_view line) const {
    const auto caller = decode_caller(line);
    const auto key = caller ? options.key_of(caller->gang) : std::nullopt;
    if (!key) return std::nullopt;
    return Admission{.end = rsh::End::kFar, .key = *key, .clear = {}};
  }

  void greet(std::string_view line, std::shared_ptr<NodeSocket> socket,
             std::optional<NodeMessage> first) const {
    const auto caller = decode_caller(line);
    auto* news = first ? std::get_if<NodeNews>(&*first) : nullptr;
    auto* hello = news == nullptr ? nullptr : std::get_if<Hello>(news);
    if (!caller || hello == nullptr) return;
    const auto on_connection = options.on_connection;
    if (on_connection) {
      on_connection(connection_on(std::move(socket), caller->gang, std::move(*hello)));
    }
  }
};

base::Result<std::unique_ptr<NodeHub>> NodeHub::open(base::EventLoop& loop, HubOptions options) {
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  const Impl& at = *impl;
  MUSTER_TRY(
      impl->gate,
      CallerGate::open(loop, {.bind = at.options.bind,
                              .port = at.options.port,
                              .whose = "muster-nodes",
                              .admit = [&at](std::string_view line) { return at.admit(line); },
                              .on_caller =
                                  [&at](std::string_view line, std::shared_ptr<NodeSocket> socket,
                                        std::optional<NodeMessage> first) {
                                    at.greet(line, std::move(socket), std::move(first));
                                  }}));
  return std::unique_ptr<NodeHub>(new NodeHub(std::move(impl)));
}

NodeHub::NodeHub(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
NodeHub::~NodeHub() = default;

uint16_t NodeHub::port() const {
  return impl_->gate->port();
}

}  // namespace muster::engine::node
