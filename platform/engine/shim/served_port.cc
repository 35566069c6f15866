#include "engine/shim/served_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>

#include "base/unique_fd.h"

namespace muster::engine {

using base::UniqueFd;

namespace {

UniqueFd make_tcp_socket(int family) {
  UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // As servers do: what is left of a connection that has ended takes no port. SO_REUSEPORT is not
  // set, so that a server which shares its port with others is seen, too.
  const int yes = 1;
  if (socket) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  return socket;
}

/// 0, or why it could not be had.
int try_to_bind(const UniqueFd& socket, const sockaddr* where, socklen_t size) {
  if (!socket) return errno;
  return ::bind(socket.get(), where, size) == 0 ? 0 : errno;
}

int try_address(const in_addr& address, int port) {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<uint16_t>(port));
  where.sin_addr = address;
  return try_to_bind(make_tcp_socket(AF_INET), reinterpret_cast<const sockaddr*>(&where),
                     sizeof where);
}

/// Of both families with one socket, as gRPC and torch bind; of IPv4 alone where there is no other.
int try_all_addresses(int port) {
  const UniqueFd socket = make_tcp_socket(AF_INET6);
  const int no = 0;
  const bool is_for_both =
      socket && ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) == 0;
  sockaddr_in6 where{};
  where.sin6_family = AF_INET6;
  where.sin6_port = htons(static_cast<uint16_t>(port));
  where.sin6_addr = in6addr_any;
  if (is_for_both) {
    const int how = try_to_bind(socket, reinterpret_cast<const sockaddr*>(&where), sizeof where);
    if (how == 0 || how == EADDRINUSE) return how;
  }
  return try_address({htonl(INADDR_ANY)}, port);
}

}  // namespace

base::Result<void> check_is_free(const launch::ServedPort& served) {
  in_addr address{};
  const bool is_one = ::inet_pton(AF_INET, served.address.c_str(), &address) == 1;
  const int how = is_one ? try_address(address, served.port) : try_all_addresses(served.port);
  // What else is wrong with it the program finds, and says better.
  if (how != EADDRINUSE) return {};
  return base::Error{.code = base::ErrorCode::kConflict,
                     .what = "port " + std::to_string(served.port) +
                             (is_one ? " of " + served.address : "") +
                             " is taken by another process"};
}

}  // namespace muster::engine
