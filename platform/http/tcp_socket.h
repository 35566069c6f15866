// TCP sockets as Muster uses them: IPv4 and IPv6 alike, close-on-exec, small messages sent at once.
//
// Thread-safe (no state). Names are looked up where they are given: that may block.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "http/ip_address.h"

namespace muster::http {

struct HostAndPort {
  std::string host;  ///< without the brackets of an IPv6 address
  int port = 0;
};

/// "0.0.0.0:7443", "[::1]:0", "localhost:7443". kInvalid: it is not of this form.
base::Result<HostAndPort> parse_host_and_port(const std::string& text);
/// The reverse: an IPv6 address gets its brackets.
std::string to_string(const HostAndPort& address);

/// Connections that the kernel keeps until they are accepted, on any listening socket.
inline constexpr int kListenBacklog = 1024;

/// Listens without blocking, on the first address of the host that can be had.
/// kInvalid: the host has no address here. kConflict: the port is taken.
base::Result<base::UniqueFd> listen_on(const HostAndPort& address);

/// Where a listening socket listens: the port is the one that was chosen for 0.
base::Result<std::string> listening_at(int fd);

/// A connected socket that does not block. Tries each address of the host, for `patience` at most.
/// kUnavailable: nobody answers, or nobody has such a name.
base::Result<base::UniqueFd> connect_to(const HostAndPort& address,
                                        std::chrono::milliseconds patience);

/// A socket that does not block and goes nowhere yet.
base::Result<base::UniqueFd> socket_for(const IpAddress& address);
/// 0: it is connected. EINPROGRESS: it will be when the socket can be written, or not
/// (connect_error()). Else the errno.
int begin_to_connect(int fd, const IpAddress& address, int port);
/// 0, or the errno of a connect that has ended.
int connect_error(int fd);

/// Who is at the other end of a connected socket, without the port; an IPv4 address is written as
/// such, however it came.
std::string address_of_peer(int fd);

/// Sends small messages at once instead of waiting for more to send with them.
void send_at_once(int fd);

}  // namespace muster::http
