// https://HOST[:PORT]: where a server is that others share.
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

/// kInvalid: it is none; http://, a path or a user in it are faults too.
base::Result<ServerAddress> parse_server_url(std::string_view text);

/// With the port always, so that two of one server are equal.
std::string server_url(std::string_view host, int port);

}  // namespace muster::api
