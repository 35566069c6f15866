#include "http/server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <unordered_set>
#include <utility>

#include "base/log.h"
#include "http/connection.h"
#include "http/head.h"
#include "http/unix_socket.h"

namespace muster::http {

namespace {

/// Accepted at one go before the loop's other callbacks get their turn.
constexpr int kMostAtOnce = 32;
/// How long to leave the queue alone when there are no descriptors left: the socket stays readable,
/// and looking again at once would only spin.
constexpr std::chrono::milliseconds kBreath{100};

/// Without waiting: a client that does not read even this has earned nothing.
void refuse(const base::UniqueFd& socket) {
  const Response response = plain_problem(503, "the server has too many connections");
  const std::string text = response_head(response, Framing::kLength, false) + response.body;
  ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

struct Server::Impl : std::enable_shared_from_this<Impl> {
  Impl(base::EventLoop& runs_on, Handler answers, const Limits& bounds)
      : loop(runs_on), handler(std::make_shared<Handler>(std::move(answers))), limits(bounds) {}

  void accept_again() {
    breath.reset();
    accepting = loop.when_readable(listener.fd(), [this] { accept_waiting(); });
  }

  void accept_waiting() {
    for (int i = 0; i < kMostAtOnce; ++i) {
      base::UniqueFd socket(::accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
      if (socket) {
        welcome(std::move(socket));
      } else if (errno == EAGAIN) {
        return;
      } else if (errno != EINTR && errno != ECONNABORTED) {
        base::log_warning(base::system_error("cannot accept a connection", errno).what);
        breath = loop.after(kBreath, [this] { accept_again(); });
        accepting.reset();
        return;
      }
    }
  }

  void welcome(base::UniqueFd socket) {
    const auto peer = peer_of(socket.get());
    if (!peer || !is_trusted(*peer, ::geteuid())) {
      base::log_warning("hung up on a stranger: " +
                        (peer ? "user " + std::to_string(*peer) : peer.error().what));
      return;
    }
    if (connections.size() >= limits.connections) return refuse(socket);
    const auto connection = std::make_shared<Connection>(loop, handler, limits, *peer);
    connections.insert(connection);
    connection->start(std::move(socket), [weak = weak_from_this()](const auto& ended) {
      if (const auto self = weak.lock()) self->connections.erase(ended);
    });
  }

  void close() {
    accepting.reset();
    breath.reset();
    listener.close();
    // Each removes itself from the set: walk over a copy.
    for (const auto& connection : std::exchange(connections, {})) connection->drop();
  }

  base::EventLoop& loop;
  std::shared_ptr<const Handler> handler;
  Limits limits;
  Listener listener;
  base::EventLoop::Interest accepting;
  base::EventLoop::Interest breath;  ///< until accepting is tried again
  std::unordered_set<std::shared_ptr<Connection>> connections;
};

Server::Server(base::EventLoop& loop, Handler handler, Limits limits)
    : impl_(std::make_shared<Impl>(loop, std::move(handler), limits)) {}

Server::~Server() {
  close();
}

base::Result<void> Server::listen(const std::filesystem::path& path) {
  MUSTER_TRY(impl_->listener, listen_on(path));
  impl_->accept_again();
  return {};
}

size_t Server::connections() const {
  return impl_->connections.size();
}

void Server::close() {
  impl_->close();
}

}  // namespace muster::http
