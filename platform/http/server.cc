#include "http/server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/log.h"
#include "http/byte_stream.h"
#include "http/head.h"
#include "http/server_connection.h"
#include "http/sockets.h"
#include "http/tls.h"

namespace muster::http {

using base::Result;

namespace {

/// The number of connections accepted before other callbacks of the loop run.
constexpr int kMostAtOnce = 32;
/// The pause when no descriptors are left. The socket stays readable, so trying again at once would
/// spin.
constexpr std::chrono::milliseconds kAcceptRetryPause{100};

/// Sent without waiting: a client that does not read it gets nothing.
void refuse(const base::UniqueFd& socket) {
  const Response response = plain_problem(503, "the server has too many connections");
  const std::string text = response_head(response, Framing::kLength, false) + response.body;
  ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

/// A listening socket whose connections are accepted, a few at a time.
class Server::Door {
 public:
  using Welcome = std::function<void(base::UniqueFd)>;

  /// `fd` must outlive this object.
  Door(base::EventLoop& loop, int fd, Welcome welcome)
      : loop_(loop), fd_(fd), welcome_(std::move(welcome)) {
    accept_again();
  }

 private:
  void accept_again() {
    retry_.reset();
    accepting_ = loop_.when_readable(fd_, [this] { accept_waiting(); });
  }

  void accept_waiting() {
    for (int i = 0; i < kMostAtOnce; ++i) {
      base::UniqueFd socket(::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC));
      if (socket) {
        welcome_(std::move(socket));
      } else if (errno == EAGAIN) {
        return;
      } else if (errno != EINTR && errno != ECONNABORTED) {
        base::log_warning(base::system_error("cannot accept a connection", errno).what);
        retry_ = loop_.after(kAcceptRetryPause, [this] { accept_again(); });
        accepting_.reset();
        return;
      }
    }
  }

  base::EventLoop& loop_;
  int fd_;
  Welcome welcome_;
  base::EventLoop::Interest accepting_;
  base::EventLoop::Interest retry_;  ///< until accepting is tried again
};

struct Server::Impl : std::enable_shared_from_this<Impl> {
  Impl(base::EventLoop& runs_on, Handler answers, const Limits& bounds, Gate admits)
      : loop(runs_on),
        callbacks(std::make_shared<ServerConnection::Callbacks>(
            ServerConnection::Callbacks{.handler = std::move(answers), .gate = std::move(admits)})),
        limits(bounds) {}

  Result<void> listen(const std::filesystem::path& path) {
    unix_door.reset();
    MUSTER_TRY(unix_listener, listen_on(path));
    unix_door = std::make_unique<Door>(loop, unix_listener.fd(), [this](base::UniqueFd socket) {
      accept_local(std::move(socket));
    });
    return {};
  }

  Result<std::string> listen(const std::string& address, const TlsIdentity& identity) {
    MUSTER_TRY(TlsContext context, server_context(identity));
    MUSTER_TRY(const HostAndPort where, parse_host_and_port(address));
    tls_door.reset();
    tls_listener.reset();
    MUSTER_TRY(tls_listener, listen_on(where));
    tls = std::move(context);
    tls_door = std::make_unique<Door>(loop, tls_listener.get(), [this](base::UniqueFd socket) {
      std::string peer = address_of_peer(socket.get());
      accept_tcp(std::move(socket), std::move(peer));
    });
    return listening_at(tls_listener.get());
  }

  Result<int> listen_on_loopback(int port) {
    loopback_door.reset();
    loopback_listener.reset();
    MUSTER_TRY(loopback_listener, listen_on(HostAndPort{.host = "127.0.0.1", .port = port}));
    loopback_door =
        std::make_unique<Door>(loop, loopback_listener.get(), [this](base::UniqueFd socket) {
          accept_tcp(std::move(socket), std::string(kLoopbackPeer));
        });
    MUSTER_TRY(const std::string address, listening_at(loopback_listener.get()));
    MUSTER_TRY(const HostAndPort chosen, parse_host_and_port(address));
    return chosen.port;
  }

  void close_loopback() {
    loopback_door.reset();
    loopback_listener.reset();
    const auto open_ones = connections;
    for (const auto& connection : open_ones) {
      if (connection->peer().address == kLoopbackPeer) connection->drop();
    }
  }

  size_t loopback_connections() const { return connections_of(std::string(kLoopbackPeer)); }

  /// `client`: client_of_address().
  size_t connections_of(const std::string& client) const {
    const auto found = of_address.find(client);
    return found == of_address.end() ? 0 : found->second;
  }

  void accept_local(base::UniqueFd socket) {
    const auto peer = peer_of(socket.get());
    if (!peer || !is_trusted(*peer, ::geteuid())) {
      base::log_warning("refused a connection of another user: " +
                        (peer ? "user " + std::to_string(*peer) : peer.error().what));
      return;
    }
    if (connections.size() - from_afar >= limits.connections) return refuse(socket);
    open(plain_stream(loop, std::move(socket)), {.user = *peer});
  }

  /// Before the handshake no answer can be sent, and a handshake is not worth its cost here.
  void accept_tcp(base::UniqueFd socket, std::string address) {
    const bool is_plain = address == kLoopbackPeer;
    Peer peer{.user = std::nullopt, .address = std::move(address)};
    const std::string client = client_of_address(peer.address);
    const bool is_full_for_client = connections_of(client) >= limits.connections_of_address;
    if (is_full_for_client && !close_a_newcomer(&client)) return;
    if (from_afar >= limits.connections && !close_a_newcomer(nullptr)) return;
    ++of_address[client];
    ++from_afar;
    send_at_once(socket.get());
    keep_alive(socket.get());
    open(
        is_plain ? plain_stream(loop, std::move(socket)) : tls_stream(loop, std::move(socket), tls),
        std::move(peer));
  }

  /// Closes the oldest connection whose caller is unknown; `client`: only of this client. A client
  /// without a token can so occupy no place for which a client with a token waits. Returns false if
  /// the caller of each connection is known.
  bool close_a_newcomer(const std::string* client) {
    for (auto next = newcomers.begin(); next != newcomers.end();) {
      const std::shared_ptr<ServerConnection> connection = next->second;
      if (connection->is_identified()) {
        next = newcomers.erase(next);
      } else if (client != nullptr && client_of_address(connection->peer().address) != *client) {
        ++next;
      } else {
        connection->drop();  // removes it from `newcomers`
        report_closed_newcomer();
        return true;
      }
    }
    return false;
  }

  /// One line in a minute: a hostile client can cause thousands of these in a second.
  void report_closed_newcomer() {
    ++closed_newcomers;
    const auto now = std::chrono::steady_clock::now();
    if (closed_reported && now - *closed_reported < std::chrono::minutes(1)) return;
    closed_reported = now;
    base::log_warning(
        "closed connections without a valid token, because there are too many "
        "connections",
        {{"closed", std::exchange(closed_newcomers, 0)},
         {"connections", from_afar + 1},
         {"limit", limits.connections},
         {"limit_of_address", limits.connections_of_address}});
  }

  void open(std::unique_ptr<ByteStream> stream, Peer peer) {
    auto shared = peer.user ? nullptr : waiting_bytes;
    const auto connection = std::make_shared<ServerConnection>(
        loop, callbacks, limits, std::move(peer), ++arrivals, std::move(shared));
    connections.insert(connection);
    if (!connection->peer().user) newcomers.emplace(connection->arrival(), connection);
    connection->start(std::move(stream), [weak = weak_from_this()](const auto& ended) {
      if (const auto self = weak.lock()) self->forget(ended);
    });
  }

  void forget(const std::shared_ptr<ServerConnection>& connection) {
    connections.erase(connection);
    report_if_finished();
    if (connection->peer().user) return;
    newcomers.erase(connection->arrival());
    --from_afar;
    const auto count = of_address.find(client_of_address(connection->peer().address));
    if (count != of_address.end() && --count->second == 0) of_address.erase(count);
  }

  void stop_listening() {
    unix_door.reset();
    tls_door.reset();
    loopback_door.reset();
    unix_listener.close();
    tls_listener.reset();
    loopback_listener.reset();
  }

  void finish(std::function<void()> done) {
    stop_listening();
    finished = std::move(done);
    const auto open_ones = connections;
    for (const auto& connection : open_ones) connection->retire();
    report_if_finished();
  }

  void report_if_finished() {
    if (finished && connections.empty()) loop.post(std::exchange(finished, nullptr));
  }

  void close() {
    stop_listening();
    finished = nullptr;
    // Dropping a connection removes it from the set, so this iterates over a copy.
    const auto open_ones = connections;
    for (const auto& connection : open_ones) connection->drop();
  }

  base::EventLoop& loop;
  std::shared_ptr<const ServerConnection::Callbacks> callbacks;
  Limits limits;
  std::shared_ptr<size_t> waiting_bytes = std::make_shared<size_t>(0);  ///< as Limits has them
  TlsContext tls;
  Listener unix_listener;
  base::UniqueFd tls_listener;
  base::UniqueFd loopback_listener;
  std::unique_ptr<Door> unix_door;
  std::unique_ptr<Door> tls_door;
  std::unique_ptr<Door> loopback_door;
  std::unordered_set<std::shared_ptr<ServerConnection>> connections;
  std::function<void()> finished;                      ///< to be called when no connection is left
  std::unordered_map<std::string, size_t> of_address;  ///< open connections over TCP, by client
  size_t from_afar = 0;                                ///< all of them
  uint64_t arrivals = 0;
  /// The connections over TCP, in the order of their arrival. Those whose caller is known are removed
  /// when the server looks for one to close.
  std::map<uint64_t, std::shared_ptr<ServerConnection>> newcomers;
  size_t closed_newcomers = 0;  ///< since the last report
  std::optional<std::chrono::steady_clock::time_point> closed_reported;
};

Server::Server(base::EventLoop& loop, Handler handler, Limits limits, Gate gate)
    : impl_(std::make_shared<Impl>(loop, std::move(handler), limits, std::move(gate))) {}

Server::~Server() {
  close();
}

Result<void> Server::listen(const std::filesystem::path& path) {
  return impl_->listen(path);
}

Result<std::string> Server::listen(const std::string& address, const TlsIdentity& identity) {
  return impl_->listen(address, identity);
}

Result<void> Server::set_identity(const TlsIdentity& identity) {
  MUSTER_TRY(impl_->tls, server_context(identity));
  return {};
}

Result<int> Server::listen_on_loopback(int port) {
  return impl_->listen_on_loopback(port);
}

void Server::close_loopback() {
  impl_->close_loopback();
}

size_t Server::loopback_connections() const {
  return impl_->loopback_connections();
}

void Server::set_limits(const Limits& limits) {
  impl_->limits = limits;
}

size_t Server::connections() const {
  return impl_->connections.size();
}

void Server::finish(std::function<void()> done) {
  impl_->finish(std::move(done));
}

void Server::close() {
  impl_->close();
}

}  // namespace muster::http
