#include "engine/shim/listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

namespace muster::engine {

base::Result<base::UniqueFd> listen_on(const std::string& address, int port) {
  const std::string name = address + ":" + std::to_string(port);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<uint16_t>(port));
  if (::inet_pton(AF_INET, address.c_str(), &where.sin_addr) != 1) {
    return base::Error{.code = base::ErrorCode::kInvalid,
                       .what = "'" + address + "' is no address"};
  }
  base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return base::system_error("cannot make a socket", errno);
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    base::Error error = base::system_error("cannot listen on " + name, errno);
    if (errno == EADDRINUSE) error.code = base::ErrorCode::kConflict;
    return error;
  }
  return socket;
}

}  // namespace muster::engine
