// Sockets as this library uses them: owned descriptors, deadlines, addresses, and bounded
// transfers.
//
// Thread-safety: values and free functions; a descriptor has one owner.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/collective/result.h"
#include "transport/bytes.h"

namespace muster::collective {

/// A file descriptor that is closed with its owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Descriptor() { close(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

  /// Gives up ownership without closing the descriptor.
  int release() {
    keep_in_children();
    return std::exchange(fd_, -1);
  }

  void close() {
    if (fd_ >= 0) ::close(release());
  }

  /// Closes the descriptor in every process that is forked from now on. Otherwise a child keeps the
  /// connections of its parent open, and the other ranks do not see the parent die. In the child,
  /// the number stands for another file, which its owner closes as usual.
  void close_in_children() const;

 private:
  void keep_in_children() const;

  int fd_ = -1;
};

using Clock = std::chrono::steady_clock;

/// The time until which an operation may wait. Unlike a duration, a deadline passes through any
/// number of steps without each step starting the wait anew.
using Deadline = Clock::time_point;

/// The time left in milliseconds, for poll(). Rounded up, so that a wait never ends early and
/// spins; 0 after the deadline.
inline int milliseconds_left(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::clamp<std::chrono::milliseconds::rep>(left.count(), 0, 1'000'000));
}

/// As in messages: "60 s", "0.25 s".
inline std::string in_seconds(std::chrono::milliseconds duration) {
  std::string text = std::to_string(duration.count() / 1000);
  std::string fraction = std::to_string(1000 + duration.count() % 1000).substr(1);
  while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
  return text + (fraction.empty() ? "" : "." + fraction) + " s";
}

/// The address of a socket. Its text is `host:port` for IPv4 and IPv6, and `unix:@name` for an
/// abstract unix socket, which has no file and is reachable within its network namespace.
class Address {
 public:
  Address() = default;
  Address(const sockaddr* address, socklen_t size);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const { return size_; }
  int family() const { return storage_.ss_family; }

  std::uint16_t port() const;
  Address with_port(std::uint16_t port) const;

  /// 0.0.0.0 or ::, which are valid for listening and not for connecting.
  bool is_wildcard() const;

  /// 127.0.0.0/8, ::1 or a unix socket: reachable from the same host only.
  bool is_loopback() const;

  /// "127.0.0.1:4000", "[::1]:4000", "unix:@name"; resolve() parses it.
  std::string to_string() const;

  bool operator==(const Address& other) const { return to_string() == other.to_string(); }

 private:
  sockaddr_storage storage_ = {};
  socklen_t size_ = 0;
};

/// The abstract unix socket `name`, cut off at 107 bytes.
Address unix_address(std::string_view name);

/// All addresses of `host:port`, in the order of the system's preference. `host` is a name or an
/// address; an IPv6 address stands in brackets. Queries the name service and may block.
/// `unix:@name` has one address.
///
/// Errors: kConfiguration for an invalid endpoint, kSystem for a name without addresses.
Result<std::vector<Address>> resolve(std::string_view endpoint);

/// The addresses of both ends of a socket: its own, and that of its peer.
Address local_address(int socket);
Address peer_address(int socket);

// Stream sockets, TCP and unix: non-blocking, close-on-exec, without Nagle's delay. A deadline
// bounds every wait. `cancel` is a descriptor whose readability ends the wait like the deadline;
// -1: none. Writing to a closed connection is an error, never a SIGPIPE.
//
// Errors: kSystem with the system's reason, kTimeout after the deadline.

/// Listens on `address`; port 0 selects a free port.
Result<Descriptor> listen_on(const Address& address);

/// Makes one attempt to connect.
Result<Descriptor> connect_to(const Address& address, Deadline deadline, int cancel = -1);

/// The same in two steps, for callers that poll several sockets. begin_to_connect() starts to
/// connect; once the socket is writable, finish_to_connect() returns the outcome. If the queue of a
/// unix listener is full, `reason` is EAGAIN at once.
struct Connecting {
  Descriptor socket;
  int reason = 0;  // errno of an immediate failure; EINPROGRESS: not decided yet
};
Result<Connecting> begin_to_connect(const Address& address);
Status finish_to_connect(const Descriptor& socket, const Address& address);

/// The next connection in the listener's queue.
struct Accepted {
  Descriptor socket = {};  // empty if the queue is empty
  int shortage = 0;        // errno if the process or its host has no descriptor or memory left now
};
Result<Accepted> accept_from(const Descriptor& listener);

/// Sends or receives all of `bytes`. kPeerLost if the connection ends before.
Status send_all(const Descriptor& socket, ByteView bytes, Deadline deadline);
Status receive_all(const Descriptor& socket, std::span<std::byte> bytes, Deadline deadline,
                   int cancel = -1);

/// Whether a descriptor is readable now; false for -1.
bool is_readable(int descriptor);

/// Sends a copy of a descriptor to the process at the other end of a unix socket, with one byte; -1
/// sends the byte alone. The buffer of a new connection always has room for it.
Status send_descriptor(const Descriptor& socket, int fd);

/// Receives that byte and the descriptor sent with it, if any. The socket must be readable.
/// Errors: kPeerLost if the connection ended.
Result<Descriptor> receive_descriptor(const Descriptor& socket);

/// The outcome of one non-blocking send or recv.
struct Transfer {
  enum class Outcome { kMoved, kWouldBlock, kEnded };
  Outcome outcome;
  std::size_t bytes = 0;  // kMoved: the number of bytes
  int reason = 0;         // kEnded: errno, or 0 for an orderly shutdown
};

Transfer send_some(const Descriptor& socket, ByteView bytes);
Transfer receive_some(const Descriptor& socket, std::span<std::byte> bytes);

/// What a TCP connection has sent so far, as the kernel counts it: the bytes that the peer has
/// acknowledged, and the time in which bytes were on their way or waited for the network. Time in
/// which only the peer's full buffer held them back does not count. Zeros for other sockets, and for
/// kernels before 4.10.
struct SentOver {
  std::uint64_t bytes = 0;
  std::chrono::microseconds busy{0};
};
SentOver sent_over(const Descriptor& socket);

/// "cannot listen on 10.0.0.1:80: Permission denied"
Error system_error(const std::string& what, int reason);

/// Why a connection ended, for messages: the system's text for `reason`, or that the peer closed
/// it.
std::string reason_of_end(int reason);

}  // namespace muster::collective
