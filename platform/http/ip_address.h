// An IP address as a number, so that rules can be asked about it.
//
// Pure; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace muster::http {

struct IpAddress {
  bool is_v4 = true;
  std::array<uint8_t, 16> bytes{};  ///< in network order; of IPv4 the first four

  auto operator<=>(const IpAddress&) const = default;
};

/// "10.1.2.3", "fe80::1": four whole numbers, or IPv6 without brackets and zone.
std::optional<IpAddress> ip_address_of(const std::string& text);
std::string to_string(const IpAddress& address);

}  // namespace muster::http
