#include "engine/shim/quick_acks.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <utility>

namespace muster::engine {

namespace {

/// How long Linux delays an acknowledgement (TCP_DELACK_MIN).
constexpr std::chrono::milliseconds kDelayedAck{40};

}  // namespace

// Without the descriptor, acknowledgements are late, and nothing else.
QuickAcks::QuickAcks() : arrivals_(::epoll_create1(EPOLL_CLOEXEC)) {}

void QuickAcks::add(pid_t server, const base::UniqueFd& connection) {
  base::UniqueFd socket(::fcntl(connection.get(), F_DUPFD_CLOEXEC, 0));
  if (!socket) return;
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.u64 = static_cast<uint64_t>(server)}};
  if (::epoll_ctl(arrivals_.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0) return;
  connections_[server] = {.socket = std::move(socket), .until = {}};
}

int QuickAcks::milliseconds_to_wait() const {
  return may_be_due_ ? 1 : -1;
}

void QuickAcks::take_arrivals(Steady::time_point now) {
  std::array<epoll_event, 16> events{};
  const int count =
      ::epoll_wait(arrivals_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const auto found = connections_.find(static_cast<pid_t>(events[i].data.u64));
    if (found == connections_.end()) continue;
    if ((events[i].events & (EPOLLHUP | EPOLLERR)) != 0) {
      leave(found);
      continue;
    }
    ++found->second.arrivals;
    found->second.until = now + kDelayedAck;
  }
}

void QuickAcks::serve(Steady::time_point now) {
  if (connections_.empty()) return;
  take_arrivals(now);
  may_be_due_ = false;
  for (auto connection = connections_.begin(); connection != connections_.end();) {
    const auto& [socket, arrivals, until] = connection->second;
    if (now < until) {
      const int on = 1;
      ::setsockopt(socket.get(), IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
      may_be_due_ = true;
    }
    connection = arrivals < kArrivals ? std::next(connection) : leave(connection);
  }
}

void QuickAcks::ended(pid_t server) {
  if (const auto found = connections_.find(server); found != connections_.end()) leave(found);
}

/// Other processes may still have the socket, so that it is not removed by being closed here.
QuickAcks::Connections::iterator QuickAcks::leave(Connections::iterator connection) {
  ::epoll_ctl(arrivals_.get(), EPOLL_CTL_DEL, connection->second.socket.get(), nullptr);
  return connections_.erase(connection);
}

}  // namespace muster::engine
