// The address of a host's engine: Docker's or Podman's API, over a unix socket, TLS or ssh.
//
// Thread-safe (no state).
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace muster::engine {

using base::Result;

struct UnixEndpoint {
  std::filesystem::path socket;

  bool operator==(const UnixEndpoint&) const = default;
};

/// TLS with a client certificate. Plain TCP is refused: access to an engine is root access to its
/// host.
struct TlsEndpointOfHost {
  std::string host;
  int port = 2376;
  std::filesystem::path certificates;  ///< the folder of ca.pem, cert.pem and key.pem

  bool operator==(const TlsEndpointOfHost&) const = default;
};

/// The socket of a host that is reached by ssh, with the user's configuration and keys.
struct SshEndpoint {
  std::string user;  ///< empty: ssh's default
  std::string host;
  int port = 0;                  ///< 0: ssh's default
  std::filesystem::path socket;  ///< on that host; empty: the usual sockets are tried

  bool operator==(const SshEndpoint&) const = default;
};

using Endpoint = std::variant<UnixEndpoint, TlsEndpointOfHost, SshEndpoint>;

/// "unix:///run/docker.sock", "/run/docker.sock", "tcp://HOST[:PORT]",
/// "ssh://[USER@]HOST[:PORT][/SOCKET]". `certificates`: the folder for a tcp endpoint. kInvalid: a
/// malformed text, or missing certificates, which the error names.
Result<Endpoint> parse_endpoint(std::string_view text, const std::filesystem::path& certificates);

/// The text for errors and listings.
std::string to_string(const Endpoint& endpoint);

/// The environment in which find_endpoint() looks for the engine of this machine.
struct Surroundings {
  std::function<std::optional<std::string>(const std::string& name)> variable;
  std::function<bool(const std::filesystem::path&)> is_socket;
  unsigned user = 0;
};
Surroundings surroundings_here();

/// DOCKER_HOST (with DOCKER_CERT_PATH), else the first of the usual sockets that exists: Podman's
/// and Docker's of the user, then those of the system. kUnavailable: none exists; the error lists
/// the sockets that were tried and how to start an engine.
Result<Endpoint> find_endpoint(const Surroundings& here);

}  // namespace muster::engine
