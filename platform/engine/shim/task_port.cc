#include "engine/shim/task_port.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include "base/unique_fd.h"

namespace muster::engine {

using base::UniqueFd;

// --- greetings

Greeting read_greeting(std::string_view bytes) {
  if (bytes.starts_with(kSshGreeting)) return Greeting::kSsh;
  if (bytes.starts_with(kRshGreeting)) return Greeting::kRsh;
  const bool may_become_one = kSshGreeting.starts_with(bytes) || kRshGreeting.starts_with(bytes);
  return may_become_one ? Greeting::kUnfinished : Greeting::kNone;
}

// --- the port for ssh

base::Result<base::UniqueFd> listen_on(const std::string& address, int port) {
  const std::string name = address + ":" + std::to_string(port);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<uint16_t>(port));
  if (::inet_pton(AF_INET, address.c_str(), &where.sin_addr) != 1) {
    return base::Error{.code = base::ErrorCode::kInvalid,
                       .what = "'" + address + "' is not an address"};
  }
  base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return base::system_error("cannot make a socket", errno);
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  // Accepted connections inherit it. sshd sets it for terminals only, and answers a request in two
  // writes: the second would wait for the client's delayed acknowledgement, 40 ms.
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    base::Error error = base::system_error("cannot listen on " + name, errno);
    if (errno == EADDRINUSE) error.code = base::ErrorCode::kConflict;
    return error;
  }
  return socket;
}

// --- the ports of programs

namespace {

UniqueFd make_tcp_socket(int family) {
  UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // As servers do: with SO_REUSEADDR, the rest of an ended connection does not occupy the port.
  // Without SO_REUSEPORT, a server that shares its port with others counts, too.
  const int yes = 1;
  if (socket) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  return socket;
}

/// 0, or the error number.
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

/// Tries all addresses of IPv6 and IPv4 with one socket, as gRPC and torch bind them; only IPv4 on
/// a machine without IPv6.
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
  // The program finds other faults itself and reports them better.
  if (how != EADDRINUSE) return {};
  return base::Error{.code = base::ErrorCode::kConflict,
                     .what = "port " + std::to_string(served.port) +
                             (is_one ? " of " + served.address : "") +
                             " is in use by another process"};
}

// --- waiting for a greeting

namespace {

constexpr std::chrono::milliseconds kProbePause{200};

}  // namespace

void PortProbe::start(const std::string& bound, int port) {
  address_ = bound == "0.0.0.0" ? "127.0.0.1" : bound;
  port_ = port;
  connect();
}

void PortProbe::connect() {
  again_at_.reset();
  received_.clear();
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<uint16_t>(port_));
  socket_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const auto* const address = reinterpret_cast<const sockaddr*>(&where);
  const bool connects =
      socket_ && ::inet_pton(AF_INET, address_.c_str(), &where.sin_addr) == 1 &&
      (::connect(socket_.get(), address, sizeof where) == 0 || errno == EINPROGRESS);
  if (!connects) retry();
}

void PortProbe::retry() {
  socket_.reset();
  again_at_ = Steady::now() + kProbePause;
}

void PortProbe::watch(std::vector<pollfd>& polled) const {
  polled.push_back({socket_.get(), POLLIN, 0});
}

int PortProbe::milliseconds_to_wait() const {
  if (!again_at_) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*again_at_ - Steady::now());
  return static_cast<int>(std::max<int64_t>(0, left.count()));
}

bool PortProbe::serve(std::span<const pollfd> polled) {
  if (again_at_ && Steady::now() >= *again_at_) connect();
  return polled[0].revents != 0 && socket_ && receive();
}

bool PortProbe::receive() {
  std::array<char, 256> buffer;
  const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  received_.append(buffer.data(), static_cast<size_t>(std::max<ssize_t>(count, 0)));
  const Greeting greeting = read_greeting(received_);
  if (count > 0 && greeting == Greeting::kUnfinished) return false;
  if (count <= 0 || greeting == Greeting::kNone) {
    retry();
    return false;
  }
  if (greeting == Greeting::kSsh) {
    [[maybe_unused]] const ssize_t sent =
        ::send(socket_.get(), kSshAnswer.data(), kSshAnswer.size(), MSG_NOSIGNAL);
  }
  socket_.reset();
  return true;
}

}  // namespace muster::engine
