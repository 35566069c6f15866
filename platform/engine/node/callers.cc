#include "engine/node/callers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <list>
#include <utility>

namespace muster::engine::node {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;

namespace {

/// A caller with a key finishes its handshake within a moment.
constexpr std::chrono::seconds kStrangerPatience{10};
/// The most connections accepted in one turn of the loop: a gang of a thousand tasks calls at once.
constexpr int kAcceptedATurn = 32;
/// Pause after this process has run out of descriptors.
constexpr std::chrono::milliseconds kAcceptPause{200};
constexpr int kBacklog = 4096;

class SocketConnection : public NodeConnection {
 public:
  SocketConnection(std::shared_ptr<NodeSocket> socket, GangId gang, Hello hello)
      : socket_(std::move(socket)), gang_(std::move(gang)), hello_(std::move(hello)) {}
  ~SocketConnection() override { socket_->hang_up(); }

  const GangId& gang() const override { return gang_; }
  const Hello& hello() const override { return hello_; }
  void listen(Handlers handlers) override {
    socket_->listen({.on_established = nullptr,
                     .on_message = std::move(handlers.on_message),
                     .on_end = std::move(handlers.on_end),
                     .on_drain = std::move(handlers.on_drain)});
    has_listener_ = true;
    socket_->pause(paused_);
  }
  void send(const NodeMessage& message) override { socket_->send(message); }
  size_t waiting() const override { return socket_->waiting(); }
  void pause(bool paused) override {
    paused_ = paused;
    if (has_listener_) socket_->pause(paused);
  }

 private:
  std::shared_ptr<NodeSocket> socket_;
  GangId gang_;
  Hello hello_;
  bool has_listener_ = false;
  bool paused_ = false;
};

/// IPv4 and IPv6, if the system has both.
struct BindAddress {
  sockaddr_storage address{};
  socklen_t length = 0;
};

Result<BindAddress> bind_address(const CallerGate::Options& options) {
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
  return Error{
      .code = ErrorCode::kInvalid,
      .what = "'" + options.bind + "' is not an address at which this machine can be called",
      .advice = "give one of this machine's, or 0.0.0.0 or :: for all of them"};
}

Result<UniqueFd> listen_at(const CallerGate::Options& options) {
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
                                         std::to_string(options.port) + " for " + options.whose,
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

std::shared_ptr<NodeConnection> connection_on(std::shared_ptr<NodeSocket> socket, GangId gang,
                                              Hello hello) {
  return std::make_shared<SocketConnection>(std::move(socket), std::move(gang), std::move(hello));
}

struct CallerGate::State {
  /// A caller that is not admitted yet.
  struct Stranger {
    UniqueFd socket;  ///< until the first line has arrived
    std::string line;
    std::shared_ptr<NodeSocket> secured;
    base::EventLoop::Interest readable;
    base::EventLoop::Interest patience;
  };
  using Place = std::list<Stranger>::iterator;

  State(base::EventLoop& on, Options given, UniqueFd listening)
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
    if (strangers.size() >= options.most) strangers.pop_front();
    const auto place = strangers.emplace(strangers.end());
    place->socket = std::move(socket);
    place->patience = loop.after(kStrangerPatience, [this, place] { forget(place); });
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
    const std::string rest = place->line.substr(length);
    place->line.resize(length);
    const auto admission = options.admit(place->line);
    if (!admission) return forget(place);
    place->readable.reset();
    place->secured = std::make_shared<NodeSocket>(loop, std::move(place->socket), admission->end,
                                                  admission->key);
    const auto secured = place->secured;
    NodeSocket::Handlers handlers{.on_established = nullptr,
                                  .on_message = nullptr,
                                  .on_end = [this, place](const std::string&) { forget(place); },
                                  .on_drain = nullptr};
    if (options.is_greeted) {
      handlers.on_message = [this, place](NodeMessage first) { pass_on(place, std::move(first)); };
    } else {
      handlers.on_established = [this, place] { pass_on(place, std::nullopt); };
    }
    secured->begin(std::move(handlers), admission->clear, rest);
  }

  void pass_on(Place place, std::optional<NodeMessage> first) {
    const auto socket = place->secured;
    socket->pause(true);
    socket->listen({});
    const std::string line = std::move(place->line);
    forget(place);
    const auto on_caller = options.on_caller;
    if (on_caller) on_caller(line, socket, std::move(first));
  }

  /// Later: one of its handlers may be running.
  void forget(Place place) {
    place->patience.reset();
    place->readable.reset();
    if (place->secured) loop.post([socket = std::exchange(place->secured, nullptr)] {});
    strangers.erase(place);
  }

  base::EventLoop& loop;
  Options options;
  UniqueFd listener;
  std::list<Stranger> strangers;
  base::EventLoop::Interest accepting;  // after listener: destroyed first
};

Result<std::unique_ptr<CallerGate>> CallerGate::open(base::EventLoop& loop, Options options) {
  MUSTER_TRY(UniqueFd listener, listen_at(options));
  auto state = std::make_shared<State>(loop, std::move(options), std::move(listener));
  state->accept_again();
  return std::unique_ptr<CallerGate>(new CallerGate(std::move(state)));
}

CallerGate::CallerGate(std::shared_ptr<State> state) : state_(std::move(state)) {}
CallerGate::~CallerGate() = default;

uint16_t CallerGate::port() const {
  return port_of(state_->listener);
}

}  // namespace muster::engine::node
