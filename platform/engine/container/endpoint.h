// Where the engine of a host answers: Docker's or Podman's API, over a unix socket, TLS, or ssh.
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

/// With a client certificate: who may speak to an engine is root on its host. Without TLS none is
/// spoken to.
struct TlsEndpointOfHost {
  std::string host;
  int port = 2376;
  std::filesystem::path certificates;  ///< the folder of ca.pem, cert.pem and key.pem

  bool operator==(const TlsEndpointOfHost&) const = default;
};

/// The socket of a host that is reached by ssh, with the user's own configuration and keys.
struct SshEndpoint {
  std::string user;  ///< empty: as ssh has it
  std::string host;
  int port = 0;                  ///< 0: as ssh has it
  std::filesystem::path socket;  ///< there; empty: the usual ones are tried

  bool operator==(const SshEndpoint&) const = default;
};

using Endpoint = std::variant<UnixEndpoint, TlsEndpointOfHost, SshEndpoint>;

/// "unix:///run/docker.sock", "/run/docker.sock", "tcp://HOST[:PORT]",
/// "ssh://[USER@]HOST[:PORT][/SOCKET]". `certificates`: of a tcp endpoint; it has none: kInvalid,
/// saying which files are missing.
Result<Endpoint> parse_endpoint(std::string_view text, const std::filesystem::path& certificates);

/// As it is written in errors and listings.
std::string to_string(const Endpoint& endpoint);

/// What decides where the engine of this machine is.
struct Surroundings {
  std::function<std::optional<std::string>(const std::string& name)> variable;
  std::function<bool(const std::filesystem::path&)> is_socket;
  unsigned user = 0;
};
Surroundings surroundings_here();

/// DOCKER_HOST (with DOCKER_CERT_PATH), else the first of the usual sockets that is there: Podman's
/// and Docker's of the user, then those of the system. kUnavailable: none is; says which were
/// tried, and how one is started.
Result<Endpoint> find_endpoint(const Surroundings& here);

}  // namespace muster::engine
