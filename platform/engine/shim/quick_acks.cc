#include "engine/shim/quick_acks.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <utility>

namespace muster::engine {

// Without a duplicate, acknowledgements are late, and nothing else.
void QuickAcks::add(pid_t server, const base::UniqueFd& connection, Steady::time_point now) {
  base::UniqueFd socket(::fcntl(connection.get(), F_DUPFD_CLOEXEC, 0));
  if (socket) connections_.push_back({server, std::move(socket), now + kHandshake});
}

void QuickAcks::serve(Steady::time_point now) {
  for (const Connection& connection : connections_) {
    const int on = 1;
    ::setsockopt(connection.socket.get(), IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
  }
  std::erase_if(connections_,
                [&](const Connection& connection) { return connection.until <= now; });
}

void QuickAcks::ended(pid_t server) {
  std::erase_if(connections_,
                [&](const Connection& connection) { return connection.server == server; });
}

}  // namespace muster::engine
