// https://HOST[:PORT]: the address of a shared server.
//
// Pure; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::api {

inline constexpr int kDefaultPort = 7443;

struct ServerAddress {
  std::string host;  ///< an IPv6 address without its brackets
  int port = kDefaultPort;

  bool operator==(const ServerAddress&) const = default;
};

/// kInvalid: not such an address; http://, a path or a user in it are faults, too.
base::Result<ServerAddress> parse_server_url(std::string_view text);

/// Always with the port, so that two addresses of one server are equal.
std::string server_url(std::string_view host, int port);

}  // namespace muster::api
