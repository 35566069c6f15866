#include "transport/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>

namespace muster::collective {
namespace {

constexpr std::string_view kUnix = "unix:";

// An abstract name begins after a zero byte and ends with the address.
constexpr std::size_t kNameOffset = offsetof(sockaddr_un, sun_path) + 1;

struct HostAndPort {
  std::string host;
  std::string port;
};

bool is_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return !text.empty() && error == std::errc{} && end == text.data() + text.size();
}

std::optional<HostAndPort> split_endpoint(std::string_view endpoint) {
  const std::size_t colon = endpoint.rfind(':');
  if (colon == std::string_view::npos || !is_port(endpoint.substr(colon + 1))) return std::nullopt;
  std::string_view host = endpoint.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return std::nullopt;  // an IPv6 address without brackets is ambiguous
  }
  if (host.empty()) return std::nullopt;
  return HostAndPort{std::string(host), std::string(endpoint.substr(colon + 1))};
}

}  // namespace

// The descriptors that forked children close: a bit for each number, so that a child needs no lock,
// which another thread of its parent may have held. Larger numbers stay open there.
namespace {

constexpr std::size_t kMostToClose = std::size_t{1} << 20;
constexpr std::size_t kWordBits = 64;

std::array<std::atomic<std::uint64_t>, kMostToClose / kWordBits> to_close;
std::atomic<std::size_t> words_to_close = 0;  // further words are zero
int substitute = -1;

// Runs in the child before fork() returns. The child's copy of a Descriptor may still close the
// number, so another file takes it: a free number could become that of a file of the child.
void close_for_child() {
  const std::size_t words = words_to_close;
  for (std::size_t word = 0; word < words; ++word) {
    for (std::uint64_t bits = to_close[word].exchange(0); bits != 0; bits &= bits - 1) {
      const auto fd = static_cast<int>(word * kWordBits) + std::countr_zero(bits);
      if (::dup3(substitute, fd, O_CLOEXEC) < 0) ::close(fd);
    }
  }
}

bool can_close_in_children() {
  static const bool can = [] {
    substitute = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return substitute >= 0 && ::pthread_atfork(nullptr, nullptr, &close_for_child) == 0;
  }();
  return can;
}

}  // namespace

void Descriptor::close_in_children() const {
  const auto fd = static_cast<std::size_t>(fd_);
  if (fd_ < 0 || fd >= kMostToClose || !can_close_in_children()) return;
  const std::size_t words = fd / kWordBits + 1;
  std::size_t known = words_to_close;
  while (known < words && !words_to_close.compare_exchange_weak(known, words)) {
  }
  to_close[fd / kWordBits] |= std::uint64_t{1} << (fd % kWordBits);
}

void Descriptor::keep_in_children() const {
  const auto fd = static_cast<std::size_t>(fd_);
  if (fd_ < 0 || fd >= kMostToClose) return;
  const std::uint64_t bit = std::uint64_t{1} << (fd % kWordBits);
  std::atomic<std::uint64_t>& word = to_close[fd / kWordBits];
  if ((word & bit) != 0) word &= ~bit;
}

Address::Address(const sockaddr* address, socklen_t size)
    : size_(std::min<socklen_t>(size, sizeof storage_)) {
  std::memcpy(&storage_, address, size_);
}

std::uint16_t Address::port() const {
  if (family() == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(get())->sin6_port);
  if (family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(get())->sin_port);
  return 0;
}

Address Address::with_port(std::uint16_t port) const {
  Address other = *this;
  if (family() == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&other.storage_)->sin6_port = htons(port);
  } else if (family() == AF_INET) {
    reinterpret_cast<sockaddr_in*>(&other.storage_)->sin_port = htons(port);
  }
  return other;
}

bool Address::is_wildcard() const {
  if (family() == AF_INET6) {
    return IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6*>(get())->sin6_addr) != 0;
  }
  return family() == AF_INET &&
         reinterpret_cast<const sockaddr_in*>(get())->sin_addr.s_addr == INADDR_ANY;
}

bool Address::is_loopback() const {
  if (family() == AF_UNIX) return true;
  if (family() == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(get())->sin6_addr) != 0;
  }
  return family() == AF_INET &&
         ntohl(reinterpret_cast<const sockaddr_in*>(get())->sin_addr.s_addr) >> 24 == 127;
}

std::string Address::to_string() const {
  if (family() == AF_UNIX && size_ > 0) {
    if (size_ <= kNameOffset) return "a process on this host";
    const auto* const name = reinterpret_cast<const char*>(&storage_) + kNameOffset;
    return std::string(kUnix) + "@" + std::string(name, size_ - kNameOffset);
  }
  char host[NI_MAXHOST];
  if (size_ == 0 || ::getnameinfo(get(), size_, host, sizeof host, nullptr, 0, NI_NUMERICHOST)) {
    return "an unknown address";
  }
  const std::string name = family() == AF_INET6 ? "[" + std::string(host) + "]" : host;
  return name + ":" + std::to_string(port());
}

Address unix_address(std::string_view name) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  name = name.substr(0, sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return {reinterpret_cast<const sockaddr*>(&address),
          static_cast<socklen_t>(kNameOffset + name.size())};
}

Result<std::vector<Address>> resolve(std::string_view endpoint) {
  if (endpoint.starts_with(kUnix) && endpoint.substr(kUnix.size()).starts_with('@')) {
    return std::vector<Address>{unix_address(endpoint.substr(kUnix.size() + 1))};
  }
  const std::optional<HostAndPort> parts = split_endpoint(endpoint);
  if (!parts) {
    return Error{ErrorCode::kConfiguration, "'" + std::string(endpoint) + "' is not host:port",
                 "use for example 10.0.0.1:4000, name:4000 or [fd00::1]:4000"};
  }
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(parts->host.c_str(), parts->port.c_str(), &hints, &found);
  if (failed != 0) {
    return Error{ErrorCode::kSystem,
                 "host '" + parts->host + "' has no address: " + ::gai_strerror(failed)};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  std::vector<Address> addresses;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    addresses.emplace_back(at->ai_addr, at->ai_addrlen);
  }
  return addresses;
}

Address local_address(int socket) {
  sockaddr_storage storage = {};
  socklen_t size = sizeof storage;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return {};
  return {reinterpret_cast<const sockaddr*>(&storage), size};
}

Address peer_address(int socket) {
  sockaddr_storage storage = {};
  socklen_t size = sizeof storage;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return {};
  return {reinterpret_cast<const sockaddr*>(&storage), size};
}

namespace {

Result<Descriptor> open_socket(int family) {
  Descriptor socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return system_error("cannot open a socket", errno);
  return socket;
}

void set_option(const Descriptor& socket, int level, int option) {
  const int on = 1;
  ::setsockopt(socket.get(), level, option, &on, sizeof on);
}

// Up to this round-trip time two hosts are neighbours: in one rack, or two namespaces of one
// machine.
constexpr unsigned kNearMicroseconds = 300;

// Uses the round-trip time that the handshake of TCP has measured.
bool is_near(const Descriptor& socket) {
  tcp_info info = {};
  socklen_t size = sizeof info;
  return ::getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
         info.tcpi_rtt < kNearMicroseconds;
}

// A congestion control that paces, like bbr, limits a connection between neighbours as if there
// were a bottleneck in between. Cubic leaves its slow start as soon as a packet takes a little
// longer, which here only means that a processor was busy. Reno does neither, and every kernel has
// it.
void do_not_pace(const Descriptor& socket) {
  constexpr std::string_view kReno = "reno";
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, kReno.data(), kReno.size());
}

// Within one host bytes are never in transit for long, so a buffer that fits in the cache is
// sufficient. The kernel would let the buffers grow to megabytes, and the bytes would go through
// memory.
void keep_in_cache(const Descriptor& socket) {
  const int bytes = 512 << 10;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

// A socket sends its buffered bytes when an acknowledgement arrives, which is processed on the
// neighbour's processor. There they overtake bytes that this rank sends meanwhile, or are
// overtaken, and the receiver requests packets again that are not lost. Therefore a socket buffers
// little more than it can send at once. (Measured between two namespaces, 4 MiB: 0.73 ms, without
// this limit 1.85 ms.)
void keep_in_order(const Descriptor& socket) {
  const int bytes = 16 << 10;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}

// Between hosts the kernel sizes the buffers: it lets them grow with the connection. A fixed size
// stops that growth, is capped at net.core.wmem_max, often 200 KB, and makes neighbours drop the
// excess of a burst and send it again.
void tune(const Descriptor& socket) {
  const Address local = local_address(socket.get());
  if (local.family() == AF_UNIX) return;
  const Address peer = peer_address(socket.get());
  const bool same_host = peer.is_loopback() || local.with_port(0) == peer.with_port(0);
  if (same_host || is_near(socket)) {
    do_not_pace(socket);
    keep_in_order(socket);
  }
  if (same_host) keep_in_cache(socket);
  set_option(socket, IPPROTO_TCP, TCP_NODELAY);
}

// Waits until one of `events`, or an error that the next call on the socket will return. False
// after the deadline, or once `cancel` is readable.
bool wait_for(const Descriptor& socket, short events, Deadline deadline, int cancel = -1) {
  for (;;) {
    std::array<pollfd, 2> entries = {{{socket.get(), events, 0}, {cancel, POLLIN, 0}}};
    const int ready = ::poll(entries.data(), entries.size(), milliseconds_left(deadline));
    if (ready > 0) return entries[0].revents != 0;
    if (ready == 0 && Clock::now() >= deadline) return false;
    if (ready < 0 && errno != EINTR) return true;
  }
}

Transfer outcome_of(ssize_t result) {
  using Outcome = Transfer::Outcome;
  if (result > 0) return {Outcome::kMoved, static_cast<std::size_t>(result)};
  if (result == 0) return {Outcome::kEnded};
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {Outcome::kWouldBlock};
  return {Outcome::kEnded, 0, errno};
}

Error not_in_time() {
  return {ErrorCode::kTimeout, "no answer in time"};
}

}  // namespace

SentOver sent_over(const Descriptor& socket) {
  tcp_info info = {};
  socklen_t size = sizeof info;
  if (::getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  if (size < offsetof(tcp_info, tcpi_sndbuf_limited)) return {};
  return {.bytes = info.tcpi_bytes_acked,
          .busy = std::chrono::microseconds(info.tcpi_busy_time - info.tcpi_rwnd_limited)};
}

Error system_error(const std::string& what, int reason) {
  return {ErrorCode::kSystem, what + ": " + std::generic_category().message(reason)};
}

std::string reason_of_end(int reason) {
  return reason == 0 ? "connection closed" : std::generic_category().message(reason);
}

Result<Descriptor> listen_on(const Address& address) {
  Result<Descriptor> socket = open_socket(address.family());
  if (!socket) return socket;
  // A job that is restarted at once finds its port in TIME_WAIT from the previous run.
  if (address.family() != AF_UNIX) set_option(*socket, SOL_SOCKET, SO_REUSEADDR);
  if (::bind(socket->get(), address.get(), address.size()) != 0 ||
      ::listen(socket->get(), SOMAXCONN) != 0) {
    return system_error("cannot listen on " + address.to_string(), errno);
  }
  return socket;
}

Result<Connecting> begin_to_connect(const Address& address) {
  Result<Descriptor> socket = open_socket(address.family());
  if (!socket) return socket.error();
  int reason = 0;
  if (::connect(socket->get(), address.get(), address.size()) != 0) {
    reason = errno == EINTR ? EINPROGRESS : errno;
  }
  return Connecting{*std::move(socket), reason};
}

Status finish_to_connect(const Descriptor& socket, const Address& address) {
  const std::string what = "cannot connect to " + address.to_string();
  int reason = 0;
  socklen_t size = sizeof reason;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &reason, &size);
  if (reason != 0) return system_error(what, reason);
  // When retrying a local port on which no process listens yet, TCP may choose that very port as
  // this socket's own and connect the socket to itself (simultaneous open). That counts as refused.
  if (local_address(socket.get()) == peer_address(socket.get())) {
    return system_error(what, ECONNREFUSED);
  }
  tune(socket);
  return {};
}

Result<Descriptor> connect_to(const Address& address, Deadline deadline, int cancel) {
  Result<Connecting> connecting = begin_to_connect(address);
  if (!connecting) return connecting.error();
  const std::string what = "cannot connect to " + address.to_string();
  if (connecting->reason != 0 && connecting->reason != EINPROGRESS) {
    return system_error(what, connecting->reason);
  }
  if (connecting->reason == EINPROGRESS &&
      !wait_for(connecting->socket, POLLOUT, deadline, cancel)) {
    return system_error(what, ETIMEDOUT);
  }
  if (Status done = finish_to_connect(connecting->socket, address); !done) return done.error();
  return std::move(connecting->socket);
}

Result<Accepted> accept_from(const Descriptor& listener) {
  Descriptor socket(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket) {
    tune(socket);
    return Accepted{std::move(socket)};
  }
  // accept() also returns errors of a connection that was still in the queue: then that connection
  // is lost, but the listener works.
  switch (errno) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return Accepted{{}, errno};
    case EBADF:
    case EINVAL:
    case ENOTSOCK:
      return system_error("cannot accept a connection", errno);
    default:
      return Accepted();
  }
}

Status send_descriptor(const Descriptor& socket, int fd) {
  std::byte mark{};
  iovec part = {&mark, 1};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof fd)> control = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  if (::sendmsg(socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1) return {};
  return system_error("cannot send a descriptor", errno);
}

Result<Descriptor> receive_descriptor(const Descriptor& socket) {
  std::byte mark{};
  iovec part = {&mark, 1};
  int fd = -1;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof fd)> control = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got != 1) return Error{ErrorCode::kPeerLost, reason_of_end(got == 0 ? 0 : errno)};
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  }
  return Descriptor(fd);
}

Transfer send_some(const Descriptor& socket, ByteView bytes) {
  return outcome_of(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

Transfer receive_some(const Descriptor& socket, std::span<std::byte> bytes) {
  return outcome_of(::recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT));
}

Status send_all(const Descriptor& socket, ByteView bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const Transfer sent = send_some(socket, bytes);
    if (sent.outcome == Transfer::Outcome::kEnded) {
      return Error{ErrorCode::kPeerLost, reason_of_end(sent.reason)};
    }
    bytes = bytes.subspan(sent.bytes);
    if (sent.bytes == 0 && !wait_for(socket, POLLOUT, deadline)) return not_in_time();
  }
  return {};
}

Status receive_all(const Descriptor& socket, std::span<std::byte> bytes, Deadline deadline,
                   int cancel) {
  while (!bytes.empty()) {
    const Transfer received = receive_some(socket, bytes);
    if (received.outcome == Transfer::Outcome::kEnded) {
      return Error{ErrorCode::kPeerLost, reason_of_end(received.reason)};
    }
    bytes = bytes.subspan(received.bytes);
    if (received.bytes == 0 && !wait_for(socket, POLLIN, deadline, cancel)) return not_in_time();
  }
  return {};
}

bool is_readable(int descriptor) {
  pollfd entry = {descriptor, POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

}  // namespace muster::collective
