// TCP and unix sockets: addresses, listening and connecting.
//
// All sockets are close-on-exec. Unix sockets have mode 0600, and both ends check the user at the
// other end. That check is what counts: a file's mode protects only if no one can replace the
// folder, but the kernel's report of the peer is always valid.
//
// Thread-safe (no state). Functions that take a host name may block while the name is looked up.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::http {

// --- addresses

/// An IP address as a number, for comparisons and rules.
struct IpAddress {
  bool is_v4 = true;
  std::array<uint8_t, 16> bytes{};  ///< in network order; IPv4 uses the first four

  auto operator<=>(const IpAddress&) const = default;
};

/// Parses "10.1.2.3" (four complete numbers) or "fe80::1" (without brackets and zone). Pure.
std::optional<IpAddress> ip_address_of(const std::string& text);
std::string to_string(const IpAddress& address);

struct HostAndPort {
  std::string host;  ///< an IPv6 address has no brackets here
  int port = 0;
};

/// Parses "0.0.0.0:7443", "[::1]:0", "localhost:7443". kInvalid: another form.
base::Result<HostAndPort> parse_host_and_port(const std::string& text);
/// The reverse: an IPv6 address gets brackets.
std::string to_string(const HostAndPort& address);

// --- TCP

/// The number of connections that the kernel queues for any listening socket.
inline constexpr int kListenBacklog = 1024;

/// A non-blocking listening socket on the first address of the host that can be bound. kInvalid:
/// the host has no address on this machine. kConflict: the port is taken.
base::Result<base::UniqueFd> listen_on(const HostAndPort& address);

/// The address of a listening socket, with the port that the kernel chose for port 0.
base::Result<std::string> listening_at(int fd);

/// Interrupts a blocking call: while `fd` is readable, `on_wake` is called, which must drain the
/// descriptor. If it returns false, the call ends. During a stream that never pauses, it is also
/// called between the pieces.
struct Wake {
  int fd = -1;
  std::function<bool()> on_wake;
};

enum class Awaited { kReady, kTimeout, kLeft };  ///< kLeft: `wake` ended the wait
/// Waits until poll() reports `events` of `fd`, and serves `wake` meanwhile.
Awaited await_events(int fd, short events, std::chrono::steady_clock::time_point end,
                     const Wake& wake);

/// The error of a call that `wake` has ended.
base::Error left_while_connecting();

/// A connected, non-blocking socket. Tries each address of the host, for `patience` in all.
/// kUnavailable: no address answers, the name does not exist, or `wake` ended the wait.
base::Result<base::UniqueFd> connect_to(const HostAndPort& address,
                                        std::chrono::milliseconds patience, const Wake& wake = {});

/// A non-blocking socket that is not connected yet.
base::Result<base::UniqueFd> socket_for(const IpAddress& address);
/// Starts to connect. 0: connected. EINPROGRESS: wait until the socket is writable, then call
/// connect_error(). Otherwise the errno.
int begin_to_connect(int fd, const IpAddress& address, int port);
/// The result of a finished connect: 0 or an errno.
int connect_error(int fd);

/// The address at the other end of a connected socket, without the port. An IPv4 address is written
/// as IPv4 even if the socket is IPv6.
std::string address_of_peer(int fd);

/// For limits on clients: the /64 network of an IPv6 address ("2001:db8::/64"), all of which one
/// client usually has; every other text as it is.
std::string client_of_address(const std::string& address);

/// Sets TCP_NODELAY: small messages are sent at once.
void send_at_once(int fd);

/// Lets the kernel detect that the other end is gone although no connection was closed: a machine
/// was reset, or a firewall has forgotten the connection. An idle connection then fails within a
/// minute.
void keep_alive(int fd);

// --- unix sockets

/// A listening unix socket and its file, which close() removes.
class Listener {
 public:
  Listener() = default;
  Listener(Listener&&) noexcept = default;
  Listener& operator=(Listener&& other) noexcept;
  ~Listener() { close(); }

  int fd() const { return fd_.get(); }
  /// Removes the file too, unless it now belongs to another server.
  void close();

 private:
  friend base::Result<Listener> listen_on(const std::filesystem::path& path);
  base::UniqueFd fd_;
  std::filesystem::path path_;
  ino_t file_ = 0;
};

/// A non-blocking listener. Replaces a socket file on which no process answers. kInvalid: the path
/// is too long. kConflict: a process answers there, or the file is not a socket.
base::Result<Listener> listen_on(const std::filesystem::path& path);

/// Connects. kUnavailable: no process answers. kRefused: the server belongs to another user.
base::Result<base::UniqueFd> connect_to(const std::filesystem::path& path);

/// A non-blocking connection without a check of the peer, which is left to the caller. kInvalid:
/// the path is too long. kUnavailable: no process listens there. kRefused: no permission.
/// kExhausted: the listener's queue is full; try again later.
base::Result<base::UniqueFd> try_to_connect_to(const std::filesystem::path& path);

/// The user at the other end of a connected unix socket.
base::Result<uid_t> peer_of(int fd);

/// Whether `self` accepts `peer`: the same user, or root, which has full access anyway.
bool is_trusted(uid_t peer, uid_t self);

}  // namespace muster::http
