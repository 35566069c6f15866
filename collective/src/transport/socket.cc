#include "transport/socket.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <cerrno>
#include <string_view>
#include <system_error>

namespace muster::collective {
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

// A congestion control that paces, like bbr, meters a connection within one host as if there were a
// bottleneck on the way. Cubic does not; where the kernel has it not, nothing is lost. (Measure
// with bench/all_reduce_bench.cc.)
void do_not_pace(const Descriptor& socket) {
  constexpr std::string_view kCubic = "cubic";
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, kCubic.data(), kCubic.size());
}

// True once one of `events` (or an error, which the next call on the socket will report) is there.
bool wait_for(const Descriptor& socket, short events, Deadline deadline) {
  for (;;) {
    pollfd entry = {socket.get(), events, 0};
    const int ready = ::poll(&entry, 1, milliseconds_left(deadline));
    if (ready > 0) return true;
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

Error system_error(const std::string& what, int reason) {
  return {ErrorCode::kSystem, what + ": " + std::generic_category().message(reason)};
}

std::string reason_of_end(int reason) {
  return reason == 0 ? "connection closed" : std::generic_category().message(reason);
}

Result<Descriptor> listen_on(const Address& address) {
  Result<Descriptor> socket = open_socket(address.family());
  if (!socket) return socket;
  // A job that is started again at once finds its port in TIME_WAIT from the run before.
  set_option(*socket, SOL_SOCKET, SO_REUSEADDR);
  if (::bind(socket->get(), address.get(), address.size()) != 0 ||
      ::listen(socket->get(), SOMAXCONN) != 0) {
    return system_error("cannot listen on " + address.to_string(), errno);
  }
  return socket;
}

Result<Descriptor> connect_to(const Address& address, Deadline deadline) {
  Result<Descriptor> socket = open_socket(address.family());
  if (!socket) return socket;
  const std::string what = "cannot connect to " + address.to_string();
  if (::connect(socket->get(), address.get(), address.size()) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) return system_error(what, errno);
    if (!wait_for(*socket, POLLOUT, deadline)) return system_error(what, ETIMEDOUT);
    int reason = 0;
    socklen_t size = sizeof reason;
    ::getsockopt(socket->get(), SOL_SOCKET, SO_ERROR, &reason, &size);
    if (reason != 0) return system_error(what, reason);
  }
  // Retrying a local port that nobody listens on yet, TCP may pick that very port as our own and
  // connect the socket to itself (simultaneous open). That is nobody.
  const Address local = local_address(socket->get());
  const Address peer = peer_address(socket->get());
  if (local == peer) return system_error(what, ECONNREFUSED);
  if (peer.is_loopback() || local.with_port(0) == peer.with_port(0)) do_not_pace(*socket);
  set_option(*socket, IPPROTO_TCP, TCP_NODELAY);
  return socket;
}

Result<Descriptor> accept_from(const Descriptor& listener) {
  Descriptor socket(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket) {
    set_option(socket, IPPROTO_TCP, TCP_NODELAY);
    return socket;
  }
  // accept() also reports what befell a connection that was still in the queue: that one is gone,
  // the listener is fine.
  const bool ours = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM ||
                    errno == EBADF || errno == EINVAL || errno == ENOTSOCK;
  if (ours) return system_error("cannot accept a connection", errno);
  return Descriptor();
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

Status receive_all(const Descriptor& socket, std::span<std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const Transfer received = receive_some(socket, bytes);
    if (received.outcome == Transfer::Outcome::kEnded) {
      return Error{ErrorCode::kPeerLost, reason_of_end(received.reason)};
    }
    bytes = bytes.subspan(received.bytes);
    if (received.bytes == 0 && !wait_for(socket, POLLIN, deadline)) return not_in_time();
  }
  return {};
}

}  // namespace muster::collective
