#include "engine/slurm/node/server_search.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace muster::engine::slurm {

using base::Error;
using base::ErrorCode;
using base::UniqueFd;

struct SocketAddress {
  sockaddr_storage address{};
  socklen_t length = 0;
};

/// Result of looking up the name of a host.
struct HostAddresses {
  std::vector<SocketAddress> addresses;
  std::string why;  ///< why there are no addresses, or no more of them
};

namespace {

/// A host that is there answers in a moment, one that is not may never do.
constexpr std::chrono::seconds kConnectPatience{3};

HostAddresses look_up_name(const std::string& host, uint16_t port) {
  addrinfo wish{};
  wish.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wish, &list);
  if (error != 0) return {.addresses = {}, .why = ::gai_strerror(error)};
  HostAddresses found;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    SocketAddress address;
    if (entry->ai_addrlen > sizeof address.address) continue;
    std::memcpy(&address.address, entry->ai_addr, entry->ai_addrlen);
    address.length = entry->ai_addrlen;
    found.addresses.push_back(address);
  }
  ::freeaddrinfo(list);
  found.why = "it has no address";
  return found;
}

}  // namespace

struct ServerSearch::Search {
  CallbackAddress server;
  Found found;
  size_t host = 0;
  HostAddresses names;
  size_t address = 0;
  std::string whys;
  UniqueFd socket;
  base::EventLoop::Interest connecting;  // after socket: they must go first
  base::EventLoop::Interest patience;
};

std::shared_ptr<void> ServerSearch::find(const CallbackAddress& server, Found found) {
  auto search = std::make_shared<Search>();
  search->server = server;
  search->found = std::move(found);
  auto& hosts = search->server.hosts;
  const auto last = std::find(hosts.begin(), hosts.end(), answered_last_);
  const auto first = last != hosts.end() && is_distrusted_ ? last + 1 : last;
  std::rotate(hosts.begin(), first, hosts.end());
  look_up(search);
  return search;
}

void ServerSearch::look_up(const std::shared_ptr<Search>& search) {
  if (search->host == search->server.hosts.size()) {
    loop_.post([weak = std::weak_ptr(search)] {
      const auto still = weak.lock();
      if (!still) return;
      const auto found = std::exchange(still->found, nullptr);
      found(Error{.code = ErrorCode::kUnavailable,
                  .what = "the server does not answer at port " +
                          std::to_string(still->server.port) + " of " +
                          (still->whys.empty() ? "any host" : still->whys)});
    });
    return;
  }
  const std::string host = search->server.hosts[search->host];
  const auto names = std::make_shared<HostAddresses>();
  looking_up_.run([names, host, port = search->server.port] { *names = look_up_name(host, port); },
                  [this, names, weak = std::weak_ptr(search)] {
                    const auto still = weak.lock();
                    if (!still) return;
                    still->names = std::move(*names);
                    still->address = 0;
                    connect(still);
                  });
}

void ServerSearch::connect(const std::shared_ptr<Search>& search) {
  if (search->address == search->names.addresses.size()) {
    search->whys += (search->whys.empty() ? "" : ", ") + search->server.hosts[search->host++] +
                    " (" + search->names.why + ")";
    return look_up(search);
  }
  const SocketAddress& address = search->names.addresses[search->address];
  search->socket =
      UniqueFd(::socket(address.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!search->socket) return next(search, std::strerror(errno));
  if (::connect(search->socket.get(), reinterpret_cast<const sockaddr*>(&address.address),
                address.length) == 0) {
    return connected(search, 0);
  }
  if (errno != EINPROGRESS) return next(search, std::strerror(errno));
  const std::weak_ptr<Search> weak = search;
  search->connecting = loop_.when_writable(search->socket.get(), [this, weak] {
    const auto still = weak.lock();
    if (!still) return;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(still->socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    connected(still, error);
  });
  search->patience = loop_.after(kConnectPatience, [this, weak] {
    if (const auto still = weak.lock()) connected(still, ETIMEDOUT);
  });
}

void ServerSearch::connected(const std::shared_ptr<Search>& search, int error) {
  search->connecting.reset();
  search->patience.reset();
  if (error != 0) return next(search, std::strerror(error));
  answered_last_ = search->server.hosts[search->host];
  is_distrusted_ = false;
  const auto found = std::exchange(search->found, nullptr);
  found(std::move(search->socket));
}

void ServerSearch::next(const std::shared_ptr<Search>& search, const std::string& why) {
  search->socket.reset();
  search->names.why = why;
  ++search->address;
  connect(search);
}

}  // namespace muster::engine::slurm
