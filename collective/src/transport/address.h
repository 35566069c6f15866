// The address of a socket, and the text that names one: `host:port` for IPv4 and IPv6, `unix:@name`
// for a name on this host that is in no file system (an abstract unix socket; who is in the same
// network namespace reaches it).
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/collective/result.h"

namespace muster::collective {

/// A value: copy it freely.
class Address {
 public:
  Address() = default;
  Address(const sockaddr* address, socklen_t size);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const { return size_; }
  int family() const { return storage_.ss_family; }

  std::uint16_t port() const;
  Address with_port(std::uint16_t port) const;

  /// 0.0.0.0 or ::, which one can listen on but nobody can reach.
  bool is_wildcard() const;

  /// 127.0.0.0/8, ::1 or a unix socket, which lead to the same host only.
  bool is_loopback() const;

  /// "127.0.0.1:4000", "[::1]:4000", "unix:@name"; resolve() reads it back.
  std::string to_string() const;

  bool operator==(const Address& other) const { return to_string() == other.to_string(); }

 private:
  sockaddr_storage storage_ = {};
  socklen_t size_ = 0;
};

/// The abstract unix socket of that name, at most 107 bytes of it.
Address unix_address(std::string_view name);

/// All addresses of `host:port` in the order of the system's preference. `host` is a name or an
/// address, an IPv6 address stands in brackets. Asks the name service, and so may block. A
/// `unix:@name` has one.
///
/// Errors: kConfiguration where the text is no endpoint, kSystem where the name has no address.
Result<std::vector<Address>> resolve(std::string_view endpoint);

/// The address that a socket of ours is bound to, and the one at its other end.
Address local_address(int socket);
Address peer_address(int socket);

}  // namespace muster::collective
