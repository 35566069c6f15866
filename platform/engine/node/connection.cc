#include "engine/node/connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <list>
#include <utility>

#include "base/unique_fd.h"

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
  if (count == 0) return end("has hung up");
  if (count < 0) return end(base::system_error("is out of reach", errno).what);
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

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;

namespace {

/// The most unfinished handshakes. Beyond this, the oldest is closed: a caller with a key finishes
/// its handshake within a moment.
constexpr size_t kMostStrangers = 512;
constexpr std::chrono::seconds kStrangerPatience{10};
/// The most connections accepted in one turn of the loop: a gang of a thousand tasks calls at once.
constexpr int kAcceptedATurn = 32;
/// Pause after this process has run out of descriptors.
constexpr std::chrono::milliseconds kAcceptPause{200};
constexpr int kBacklog = 4096;

class HubConnection : public NodeConnection {
 public:
  HubConnection(std::shared_ptr<NodeSocket> socket, GangId gang, Hello hello)
      : socket_(std::move(socket)), gang_(std::move(gang)), hello_(std::move(hello)) {}
  ~HubConnection() override { socket_->hang_up(); }

  const GangId& gang() const override { return gang_; }
  const Hello& hello() const override { return hello_; }
  void listen(Handlers handlers) override {
    socket_->listen({.on_established = nullptr,
                     .on_message = std::move(handlers.on_message),
                     .on_end = std::move(handlers.on_end),
                     .on_drain = std::move(handlers.on_drain)});
    is_heard_ = true;
    socket_->pause(paused_);
  }
  void send(const NodeMessage& message) override { socket_->send(message); }
  size_t waiting() const override { return socket_->waiting(); }
  void pause(bool paused) override {
    paused_ = paused;
    if (is_heard_) socket_->pause(paused);
  }

 private:
  std::shared_ptr<NodeSocket> socket_;
  GangId gang_;
  Hello hello_;
  bool is_heard_ = false;
  bool paused_ = false;
};

/// IPv4 and IPv6, if the system has both.
struct BindAddress {
  sockaddr_storage address{};
  socklen_t length = 0;
};

Result<BindAddress> bind_address(const HubOptions& options) {
  BindAddress bound;
  auto& four = reinterpret_cast<sockaddr_in&>(bound.address);
  if (::inet_pton(AF_INET, options.bind.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(options.port);
    bound.length = sizeof four;
    return bound;
  }
  auto& six = reinterpret_cast<sockaddr_in6&>(bound.address);
  if (::inet_pton(AF_INET6, options.bind.c_str(), &six.sin6_addr) == 1) {
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(options.port);
    bound.length = sizeof six;
    return bound;
  }
  return Error{.code = ErrorCode::kInvalid,
               .what = "'" + options.bind + "' is not an address that nodes can call back",
               .advice = "give one of this machine's, or 0.0.0.0 or :: for all of them"};
}

Result<UniqueFd> listen_at(const HubOptions& options) {
  MUSTER_TRY(const BindAddress bound, bind_address(options));
  UniqueFd socket(::socket(bound.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return base::system_error("cannot make a socket", errno);
  // Connections of an earlier server may be in TIME_WAIT.
  const int on = 1;
  const int off = 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bound.address.ss_family == AF_INET6) {
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  const auto* const address = reinterpret_cast<const sockaddr*>(&bound.address);
  if (::bind(socket.get(), address, bound.length) != 0 || ::listen(socket.get(), kBacklog) != 0) {
    const bool is_taken = errno == EADDRINUSE;
    Error error = base::system_error("cannot listen at " + options.bind + " port " +
                                         std::to_string(options.port) + " for muster-nodes",
                                     errno);
    if (is_taken) error.code = ErrorCode::kConflict;
    return error;
  }
  return socket;
}

uint16_t port_of(const UniqueFd& socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

struct NodeHub::State {
  /// A caller that has not sent its Hello yet.
  struct Stranger {
    UniqueFd socket;  ///< until the first line has arrived
    std::string line;
    GangId gang;
    std::shared_ptr<NodeSocket> secured;
    base::EventLoop::Interest readable;
    base::EventLoop::Interest patience;
  };
  using Place = std::list<Stranger>::iterator;

  State(base::EventLoop& on, HubOptions given, UniqueFd listening)
      : loop(on), options(std::move(given)), listener(std::move(listening)) {}

  void accept_again() {
    accepting = loop.when_readable(listener.get(), [this] { accept_some(); });
  }

  void accept_some() {
    for (int i = 0; i < kAcceptedATurn; ++i) {
      UniqueFd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (socket) {
        receive(std::move(socket));
        continue;
      }
      if (errno == EAGAIN) return;
      if (errno == EINTR || errno == ECONNABORTED) continue;
      accepting = loop.after(kAcceptPause, [this] { accept_again(); });
      return;
    }
  }

  void receive(UniqueFd socket) {
    if (strangers.size() >= kMostStrangers) strangers.pop_front();
    const auto place = strangers.emplace(strangers.end());
    place->socket = std::move(socket);
    place->patience = loop.after(kStrangerPatience, [this, place] { strangers.erase(place); });
    place->readable = loop.when_readable(place->socket.get(), [this, place] { read_line(place); });
  }

  void read_line(Place place) {
    std::array<char, kLongestCaller> buffer;
    const ssize_t count =
        ::recv(place->socket.get(), buffer.data(), kLongestCaller - place->line.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return forget(place);
    place->line.append(buffer.data(), static_cast<size_t>(count));
    const size_t end = place->line.find('\n');
    if (end != std::string::npos) return secure(place, end + 1);
    if (place->line.size() == kLongestCaller) forget(place);
  }

  void secure(Place place, size_t length) {
    const auto caller = decode_caller(std::string_view(place->line).substr(0, length));
    const auto key = caller ? options.key_of(caller->gang) : std::nullopt;
    if (!key) return forget(place);
    place->gang = caller->gang;
    place->readable.reset();
    place->secured =
        std::make_shared<NodeSocket>(loop, std::move(place->socket), rsh::End::kFar, *key);
    const auto secured = place->secured;
    const std::string line = std::move(place->line);
    secured->begin({.on_established = nullptr,
                    .on_message = [this, place](NodeMessage first) { greet(place, first); },
                    .on_end = [this, place](const std::string&) { forget(place); },
                    .on_drain = nullptr},
                   {}, std::string_view(line).substr(length));
  }

  void greet(Place place, NodeMessage& first) {
    auto* news = std::get_if<NodeNews>(&first);
    auto* hello = news == nullptr ? nullptr : std::get_if<Hello>(news);
    if (hello == nullptr) return forget(place);
    const auto socket = place->secured;
    socket->pause(true);
    socket->listen({});
    auto connection = std::make_shared<HubConnection>(socket, place->gang, std::move(*hello));
    forget(place);
    const auto on_connection = options.on_connection;
    if (on_connection) on_connection(std::move(connection));
  }

  /// Later: one of its handlers may be running.
  void forget(Place place) {
    place->patience.reset();
    place->readable.reset();
    if (place->secured) loop.post([socket = std::exchange(place->secured, nullptr)] {});
    strangers.erase(place);
  }

  base::EventLoop& loop;
  HubOptions options;
  UniqueFd listener;
  std::list<Stranger> strangers;
  base::EventLoop::Interest accepting;  // after listener: destroyed first
};

Result<std::unique_ptr<NodeHub>> NodeHub::open(base::EventLoop& loop, HubOptions options) {
  MUSTER_TRY(UniqueFd listener, listen_at(options));
  auto state = std::make_shared<State>(loop, std::move(options), std::move(listener));
  state->accept_again();
  return std::unique_ptr<NodeHub>(new NodeHub(std::move(state)));
}

NodeHub::NodeHub(std::shared_ptr<State> state) : state_(std::move(state)) {}
NodeHub::~NodeHub() = default;

uint16_t NodeHub::port() const {
  return port_of(state_->listener);
}

}  // namespace muster::engine::node
