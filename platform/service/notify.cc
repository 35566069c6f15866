#include "service/notify.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/unique_fd.h"

namespace muster::service {

bool notify(const std::string& socket, std::string_view state) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const bool is_known = socket.starts_with('/') || socket.starts_with('@');
  if (!is_known || socket.size() >= sizeof(address.sun_path)) return false;
  std::memcpy(address.sun_path, socket.data(), socket.size());
  // An abstract name is written with '@' and begins with a zero byte.
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  const base::UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return false;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket.size());
  const ssize_t sent = ::sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                                reinterpret_cast<const sockaddr*>(&address), length);
  return sent == static_cast<ssize_t>(state.size());
}

std::string take_notify_socket() {
  const char* const value = std::getenv("NOTIFY_SOCKET");
  const std::string socket = value == nullptr ? "" : value;
  ::unsetenv("NOTIFY_SOCKET");
  return socket;
}

}  // namespace muster::service
