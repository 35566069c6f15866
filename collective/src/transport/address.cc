#include "transport/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>

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
    return std::nullopt;  // an IPv6 address without brackets: which colon is the port's?
  }
  if (host.empty()) return std::nullopt;
  return HostAndPort{std::string(host), std::string(endpoint.substr(colon + 1))};
}

}  // namespace

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
                 "write 10.0.0.1:4000, name:4000 or [fd00::1]:4000"};
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

}  // namespace muster::collective
