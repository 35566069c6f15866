#include "http/sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

namespace muster::http {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;
using base::system_error;
using base::UniqueFd;
using std::chrono::steady_clock;

std::optional<IpAddress> ip_address_of(const std::string& text) {
  IpAddress address;
  if (::inet_pton(AF_INET, text.c_str(), address.bytes.data()) == 1) return address;
  address = {.is_v4 = false};
  if (::inet_pton(AF_INET6, text.c_str(), address.bytes.data()) == 1) return address;
  return std::nullopt;
}

std::string to_string(const IpAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(address.is_v4 ? AF_INET : AF_INET6, address.bytes.data(), text.data(), text.size());
  return text.data();
}

namespace {

struct FreesAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreesAddresses>;

Result<Addresses> look_up_addresses(const HostAndPort& address, int flags, ErrorCode code) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (error == 0) return Addresses(found);
  return Error{.code = code,
               .what = "host '" + address.host + "' has no address: " + ::gai_strerror(error),
               .advice = "check its name, or give its address"};
}

UniqueFd new_tcp_socket(const addrinfo& address) {
  return UniqueFd(::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                           address.ai_protocol));
}

/// 0, or the errno.
int try_to_listen(const UniqueFd& fd, const addrinfo& address) {
  const int yes = 1;
  // Allows a new server to use a port whose last connections are in TIME_WAIT.
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const bool listens = ::bind(fd.get(), address.ai_addr, address.ai_addrlen) == 0 &&
                       ::listen(fd.get(), kListenBacklog) == 0;
  return listens ? 0 : errno;
}

int milliseconds_until(steady_clock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - steady_clock::now());
  return static_cast<int>(std::max<std::chrono::milliseconds::rep>(left.count(), 0));
}

/// 0, or the errno. ECANCELED: `wake` has ended the wait.
int try_to_connect(const UniqueFd& fd, const addrinfo& address, steady_clock::time_point end,
                   const Wake& wake) {
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  const Awaited awaited = await_events(fd.get(), POLLOUT, end, wake);
  if (awaited == Awaited::kTimeout) return ETIMEDOUT;
  if (awaited == Awaited::kLeft) return ECANCELED;
  return connect_error(fd.get());
}

std::string text_of(const sockaddr_storage& address, int& port) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 six{};
    std::memcpy(&six, &address, sizeof six);
    port = ntohs(six.sin6_port);
    if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
      ::inet_ntop(AF_INET, &six.sin6_addr.s6_addr[12], text.data(), text.size());
    } else {
      ::inet_ntop(AF_INET6, &six.sin6_addr, text.data(), text.size());
    }
  } else {
    sockaddr_in four{};
    std::memcpy(&four, &address, sizeof four);
    port = ntohs(four.sin_port);
    ::inet_ntop(AF_INET, &four.sin_addr, text.data(), text.size());
  }
  return text.data();
}

}  // namespace

Result<HostAndPort> parse_host_and_port(const std::string& text) {
  const Error bad{.code = ErrorCode::kInvalid,
                  .what = "'" + text + "' is not an address to listen on or to connect to",
                  .advice = "write HOST:PORT, e.g. 0.0.0.0:7443, [::1]:7443 or localhost:7443"};
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return bad;
  std::string host = text.substr(0, colon);
  const bool in_brackets = host.starts_with('[') && host.ends_with(']');
  if (in_brackets) host = host.substr(1, host.size() - 2);
  if (host.empty() || host.find_first_of("[]/ ") != std::string::npos) return bad;
  if (!in_brackets && host.find(':') != std::string::npos) return bad;
  int port = -1;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, port);
  if (error != std::errc() || stop != end || port < 0 || port > 65535) return bad;
  return HostAndPort{.host = std::move(host), .port = port};
}

std::string to_string(const HostAndPort& address) {
  const bool six = address.host.find(':') != std::string::npos;
  return (six ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

Result<UniqueFd> listen_on(const HostAndPort& address) {
  MUSTER_TRY(const Addresses addresses,
             look_up_addresses(address, AI_PASSIVE, ErrorCode::kInvalid));
  int error = 0;
  for (const addrinfo* next = addresses.get(); next != nullptr; next = next->ai_next) {
    UniqueFd fd = new_tcp_socket(*next);
    error = fd ? try_to_listen(fd, *next) : errno;
    if (error == 0) return fd;
  }
  if (error == EADDRINUSE) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "another program listens on " + to_string(address),
                 .advice = "choose another port, or end that program"};
  }
  if (error == EADDRNOTAVAIL) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "address '" + address.host + "' is not one of this machine's",
                 .advice = "0.0.0.0 stands for all of them"};
  }
  return system_error("cannot listen on " + to_string(address), error);
}

Result<std::string> listening_at(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return system_error("cannot read the address of a listening socket", errno);
  }
  HostAndPort here;
  here.host = text_of(address, here.port);
  return to_string(here);
}

Awaited await_events(int fd, short events, steady_clock::time_point end, const Wake& wake) {
  while (true) {
    std::array<pollfd, 2> entries{
        {{.fd = fd, .events = events, .revents = 0},
         {.fd = wake.fd, .events = POLLIN, .revents = 0}}};  // poll() skips a negative one
    const int ready = ::poll(entries.data(), entries.size(), milliseconds_until(end));
    if (ready == 0) return Awaited::kTimeout;
    if (ready < 0 && errno != EINTR) return Awaited::kReady;  // the next call on `fd` fails, too
    if (ready < 0) continue;
    if (entries[1].revents != 0 && !wake.on_wake()) return Awaited::kLeft;
    if (entries[0].revents != 0) return Awaited::kReady;
  }
}

Error left_while_connecting() {
  return {.code = ErrorCode::kUnavailable, .what = "interrupted while connecting to the server"};
}

Result<UniqueFd> connect_to(const HostAndPort& address, std::chrono::milliseconds patience,
                            const Wake& wake) {
  MUSTER_TRY(const Addresses addresses, look_up_addresses(address, 0, ErrorCode::kUnavailable));
  const auto end = steady_clock::now() + patience;
  int error = 0;
  for (const addrinfo* next = addresses.get(); next != nullptr; next = next->ai_next) {
    UniqueFd fd = new_tcp_socket(*next);
    error = fd ? try_to_connect(fd, *next, end, wake) : errno;
    if (error == ECANCELED) return left_while_connecting();
    if (error != 0) continue;
    send_at_once(fd.get());
    return fd;
  }
  return Error{.code = ErrorCode::kUnavailable,
               .what = "no server answers at " + to_string(address) + ": " + std::strerror(error),
               .advice = "check that the server runs, and that no firewall blocks the connection"};
}

Result<UniqueFd> socket_for(const IpAddress& address) {
  UniqueFd fd(
      ::socket(address.is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return system_error("cannot make a socket", errno);
  return fd;
}

int begin_to_connect(int fd, const IpAddress& address, int port) {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const in_port_t number = htons(static_cast<uint16_t>(port));
  if (address.is_v4) {
    sockaddr_in four{.sin_family = AF_INET, .sin_port = number, .sin_addr = {}, .sin_zero = {}};
    std::memcpy(&four.sin_addr, address.bytes.data(), sizeof four.sin_addr);
    std::memcpy(&storage, &four, size = sizeof four);
  } else {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = number;
    std::memcpy(&six.sin6_addr, address.bytes.data(), sizeof six.sin6_addr);
    std::memcpy(&storage, &six, size = sizeof six);
  }
  return ::connect(fd, reinterpret_cast<const sockaddr*>(&storage), size) == 0 ? 0 : errno;
}

int connect_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

std::string address_of_peer(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "unknown";
  int ignored = 0;
  return text_of(address, ignored);
}

std::string client_of_address(const std::string& address) {
  in6_addr six{};
  if (::inet_pton(AF_INET6, address.c_str(), &six) != 1) return address;
  constexpr size_t kNetworkBytes = 8;
  std::memset(&six.s6_addr[kNetworkBytes], 0, sizeof six.s6_addr - kNetworkBytes);
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET6, &six, text.data(), text.size());
  return std::string(text.data()) + "/64";
}

void send_at_once(int fd) {
  const int yes = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

// Without TCP_USER_TIMEOUT: it would also end a connection whose other end answers but does not
// read for a while, as a program that is paused. Unacknowledged bytes are sent again by the kernel,
// and a machine that was reset refuses them.
void keep_alive(int fd) {
  const int yes = 1;
  const int idle_seconds = 20;
  const int interval_seconds = 10;
  const int probes = 4;
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof idle_seconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_seconds, sizeof interval_seconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
}

namespace {

constexpr size_t kLongestPath = sizeof(sockaddr_un::sun_path) - 1;

Result<sockaddr_un> socket_address_of(const fs::path& path) {
  const std::string& text = path.native();
  if (text.empty() || text.size() > kLongestPath) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "socket path '" + text + "' has " + std::to_string(text.size()) +
                         " bytes; a unix socket takes 1 to " + std::to_string(kLongestPath),
                 .advice = "choose a folder with a shorter path"};
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, text.data(), text.size());
  return address;
}

/// 0, or the errno.
int connect_socket(const UniqueFd& fd, const sockaddr_un& address) {
  while (true) {
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    if (::connect(fd.get(), generic, sizeof address) == 0) return 0;
    if (errno != EINTR) return errno;
  }
}

Result<UniqueFd> new_unix_socket(int flags) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  if (!fd) return system_error("cannot make a socket", errno);
  return fd;
}

/// Removes the socket file of a dead server; a refused connection proves that it is dead.
Result<void> clear_way(const fs::path& path, const sockaddr_un& address) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return {};
    return system_error("cannot look at socket '" + path.string() + "'", errno);
  }
  if (!S_ISSOCK(status.st_mode)) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "'" + path.string() + "' exists and is not a socket",
                 .advice = "move it away, or choose another path for the socket"};
  }
  // Non-blocking: a full queue (EAGAIN) means that a server is alive, and must not block us.
  MUSTER_TRY(const UniqueFd probe, new_unix_socket(SOCK_NONBLOCK));
  if (connect_socket(probe, address) != ECONNREFUSED) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "another server answers on '" + path.string() + "'",
                 .advice = "use that one, or end it first"};
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return system_error("cannot remove the dead socket '" + path.string() + "'", errno);
  }
  return {};
}

/// Two servers that start at the same time could each mistake the other's new socket for a dead one
/// and remove it. A lock on the folder, which leaves no file behind, prevents that.
Result<UniqueFd> lock_folder_of(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return system_error("cannot open folder '" + folder.string() + "'", errno);
  while (::flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return system_error("cannot lock folder '" + folder.string() + "'", errno);
  }
  return fd;
}

/// Linux gives the file the mode of the socket. Setting it before bind() leaves no moment in which
/// the file is open to others. umask() would do the same, but for all threads of the process.
Result<void> bind_private(const UniqueFd& fd, const fs::path& path, const sockaddr_un& address) {
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::fchmod(fd.get(), 0600) != 0 || ::bind(fd.get(), generic, sizeof address) != 0) {
    return system_error("cannot make socket '" + path.string() + "'", errno);
  }
  return {};
}

}  // namespace

Listener& Listener::operator=(Listener&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = std::move(other.fd_);
    path_ = std::move(other.path_);
    file_ = other.file_;
  }
  return *this;
}

void Listener::close() {
  if (!fd_) return;
  struct stat status{};
  if (::lstat(path_.c_str(), &status) == 0 && status.st_ino == file_) ::unlink(path_.c_str());
  fd_.reset();
}

Result<Listener> listen_on(const fs::path& path) {
  MUSTER_TRY(const sockaddr_un address, socket_address_of(path));
  MUSTER_TRY(const UniqueFd lock, lock_folder_of(path));
  MUSTER_CHECK(clear_way(path, address));

  Listener listener;
  listener.path_ = path;
  MUSTER_TRY(UniqueFd fd, new_unix_socket(SOCK_NONBLOCK));
  MUSTER_CHECK(bind_private(fd, path, address));
  struct stat status{};
  if (::lstat(path.c_str(), &status) == 0) listener.file_ = status.st_ino;
  listener.fd_ = std::move(fd);
  if (::listen(listener.fd(), kListenBacklog) != 0) {
    return system_error("cannot listen on socket '" + path.string() + "'", errno);
  }
  return listener;
}

Result<UniqueFd> connect_to(const fs::path& path) {
  MUSTER_TRY(const sockaddr_un address, socket_address_of(path));
  MUSTER_TRY(UniqueFd fd, new_unix_socket(0));
  if (const int error = connect_socket(fd, address); error == ENOENT || error == ECONNREFUSED) {
    return Error{.code = ErrorCode::kUnavailable,
                 .what = "no server answers on socket '" + path.string() + "'",
                 .advice = "start the server, or name the socket of the one that runs"};
  } else if (error != 0) {
    return system_error("cannot connect to socket '" + path.string() + "'", error);
  }
  MUSTER_TRY(const uid_t peer, peer_of(fd.get()));
  if (!is_trusted(peer, ::geteuid())) {
    return Error{.code = ErrorCode::kRefused,
                 .what = "the server on socket '" + path.string() + "' belongs to user " +
                         std::to_string(peer) + ", not to you",
                 .advice = "choose a folder for the socket that only you can write to"};
  }
  return fd;
}

Result<UniqueFd> try_to_connect_to(const fs::path& path) {
  MUSTER_TRY(const sockaddr_un address, socket_address_of(path));
  MUSTER_TRY(UniqueFd fd, new_unix_socket(SOCK_NONBLOCK));
  switch (const int error = connect_socket(fd, address)) {
    case 0:
      return fd;
    case ENOENT:
    case ENOTDIR:
      return Error{.code = ErrorCode::kUnavailable,
                   .what = "socket '" + path.string() + "' does not exist"};
    case ECONNREFUSED:
      return Error{.code = ErrorCode::kUnavailable,
                   .what = "no program listens on socket '" + path.string() + "'"};
    default:
      return system_error("cannot connect to socket '" + path.string() + "'", error);
  }
}

Result<uid_t> peer_of(int fd) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return system_error("cannot read the credentials of a socket's peer", errno);
  }
  return credentials.uid;
}

bool is_trusted(uid_t peer, uid_t self) {
  return peer == self || peer == 0;
}

}  // namespace muster::http
