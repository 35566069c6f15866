#include "engine/helper/connect.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/unique_fd.h"
#include "workspace/copy_report.h"

namespace muster::engine {

using base::UniqueFd;

namespace {

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

std::optional<Address> socket_address_of(const std::string& text, int port) {
  Address address;
  auto* const four = reinterpret_cast<sockaddr_in*>(&address.bytes);
  auto* const six = reinterpret_cast<sockaddr_in6*>(&address.bytes);
  if (::inet_pton(AF_INET, text.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(static_cast<uint16_t>(port));
    address.size = sizeof *four;
    return address;
  }
  if (::inet_pton(AF_INET6, text.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(static_cast<uint16_t>(port));
    address.size = sizeof *six;
    return address;
  }
  return std::nullopt;
}

/// Read here, and not asked of the system: it would ask the network for a name that is not there,
/// and wait for the answer.
std::vector<std::string> own_addresses() {
  std::array<char, 256> name{};
  const auto hosts = base::read_file("/etc/hosts");
  if (!hosts || ::gethostname(name.data(), name.size() - 1) != 0) return {};
  std::vector<std::string> addresses;
  std::istringstream lines(*hosts);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string address;
    words >> address;
    for (std::string word; words >> word;) {
      if (word == name.data()) addresses.push_back(address);
    }
  }
  return addresses;
}

/// Nothing, with errno: nobody listens there.
UniqueFd connection_to(const Address& address) {
  UniqueFd socket(::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return socket;
  const auto* const where = reinterpret_cast<const sockaddr*>(&address.bytes);
  while (::connect(socket.get(), where, address.size) != 0) {
    if (errno == EINTR) continue;
    const int number = errno;
    socket.reset();
    errno = number;
    break;
  }
  return socket;
}

UniqueFd connection_to(int port) {
  std::vector<std::string> places{"127.0.0.1", "::1"};
  for (std::string& own : own_addresses()) places.push_back(std::move(own));
  for (const std::string& place : places) {
    const auto address = socket_address_of(place, port);
    if (!address) continue;
    if (UniqueFd socket = connection_to(*address)) return socket;
  }
  return UniqueFd();
}

/// One direction of the connection.
struct Pump {
  int from;
  int to;
  std::array<char, 64 << 10> buffer{};
  size_t begin = 0;
  size_t end = 0;
  bool no_more = false;  ///< `from` has ended
  bool closed = false;   ///< and so has `to`

  bool is_empty() const { return begin == end; }

  /// False: the connection is broken.
  bool fill() {
    const ssize_t count = ::read(from, buffer.data(), buffer.size());
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    begin = 0;
    end = static_cast<size_t>(count);
    no_more = count == 0;
    return true;
  }

  bool drain() {
    const ssize_t count = ::write(to, buffer.data() + begin, end - begin);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    begin += static_cast<size_t>(count);
    return true;
  }
};

void close_half(int fd) {
  if (::shutdown(fd, SHUT_WR) != 0) ::close(fd);  // the output is a pipe
}

/// Whether to go on: what is ready is moved.
bool turn(Pump& pump, const pollfd& from, const pollfd& to) {
  if (from.revents != 0 && pump.is_empty() && !pump.no_more && !pump.fill()) return false;
  if (!pump.is_empty() && to.revents != 0 && !pump.drain()) return false;
  if (pump.no_more && pump.is_empty() && !pump.closed) {
    pump.closed = true;
    close_half(pump.to);
  }
  return true;
}

void pump_both_ways(int socket) {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, socket}) {
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  }
  Pump there{.from = STDIN_FILENO, .to = socket};
  Pump back{.from = socket, .to = STDOUT_FILENO};
  while (!there.closed || !back.closed) {
    const auto wanting = [](const Pump& pump) { return pump.is_empty() && !pump.no_more; };
    // A negative descriptor is left alone: one that has ended would be ready for ever.
    std::array<pollfd, 4> fds{{{wanting(there) ? there.from : -1, POLLIN, 0},
                               {there.is_empty() ? -1 : socket, POLLOUT, 0},
                               {wanting(back) ? socket : -1, POLLIN, 0},
                               {back.is_empty() ? -1 : back.to, POLLOUT, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    if (!turn(there, fds[0], fds[1]) || !turn(back, fds[2], fds[3])) return;
  }
}

}  // namespace

int connect_port(int port) {
  ::signal(SIGPIPE, SIG_IGN);
  const UniqueFd socket = connection_to(port);
  if (!socket) {
    const std::string lines = workspace::to_lines(
        {.code = base::ErrorCode::kUnavailable,
         .what = "nobody listens on port " + std::to_string(port) + ": " + std::strerror(errno)});
    static_cast<void>(base::write_all(STDERR_FILENO, lines));
    return 1;
  }
  const int yes = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  pump_both_ways(socket.get());
  return 0;
}

}  // namespace muster::engine
