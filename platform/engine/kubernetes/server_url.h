// The address of an API server, and the proxy through which it is reached.
//
// Pure; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/dial.h"

namespace muster::engine::kubernetes {

struct ServerUrl {
  bool has_tls = true;
  std::string host;  ///< without the brackets of an IPv6 address
  int port = 443;
  std::string prefix;  ///< of every path, without a slash at its end; mostly empty

  bool operator==(const ServerUrl&) const = default;
};

/// "https://10.0.0.1:6443", "https://rancher.example.com/k8s/clusters/c-1", or "10.0.0.1:8080", which
/// kubectl takes for http. kInvalid: another form, or a user in the address.
base::Result<ServerUrl> parse_server_url(std::string_view text);
/// "https://10.0.0.1:6443"
std::string to_string(const ServerUrl& url);
/// Whether the host is this machine, by its name or address.
bool is_this_machine(const std::string& host);

/// "http://[USER:PASSWORD@]HOST[:PORT]", or without "http://". kInvalid: another form, or a scheme
/// that Muster does not support (https, socks5); never quotes a password.
base::Result<http::HttpProxy> parse_proxy(std::string_view text);

/// The proxy that the environment (NAME=value) prescribes for an https server: HTTPS_PROXY, unless
/// NO_PROXY lists the server; lower-case names count too. NO_PROXY has host names (and all below
/// them), addresses, ranges ("10.0.0.0/8"), each with or without a port, or "*". This machine is
/// never reached through a proxy. nullopt: none.
base::Result<std::optional<http::HttpProxy>> proxy_for(const ServerUrl& server,
                                                       const std::vector<std::string>& environment);

/// The value of a variable in lines NAME=value; empty if it is not set.
std::string variable_in(const std::vector<std::string>& environment, std::string_view name);

}  // namespace muster::engine::kubernetes
