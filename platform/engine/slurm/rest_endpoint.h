// Where a slurmrestd answers: a unix socket, or a port of a host with TLS or without.
//
// Thread-safe (no state).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "http/async_client.h"

namespace muster::engine::slurm {

struct RestSocket {
  std::filesystem::path socket;

  bool operator==(const RestSocket&) const = default;
};

struct RestHost {
  std::string host;  ///< without the brackets of an IPv6 address
  int port = 0;
  bool has_tls = false;

  bool operator==(const RestHost&) const = default;
};

struct RestEndpoint {
  std::variant<RestSocket, RestHost> where;
  std::string prefix;  ///< of every path, behind a proxy: "/cluster"; empty: none

  bool operator==(const RestEndpoint&) const = default;
};

/// "unix:///run/slurmrestd.sock", "/run/slurmrestd.sock", "http://HOST[:PORT][/PREFIX]",
/// "https://HOST[:PORT][/PREFIX]". kInvalid: it is none of these, or names a user.
base::Result<RestEndpoint> parse_rest_endpoint(std::string_view text);

/// As it is written in errors and listings.
std::string to_string(const RestEndpoint& endpoint);

/// Whether nobody else reads what is sent there: a socket or an address of this machine, or TLS.
/// A name is taken for what it says: of all names, "localhost" alone is this machine.
bool is_private(const RestEndpoint& endpoint);

/// kInvalid: the authorities of this machine cannot be read. A certificate is to be of one of them
/// (SSL_CERT_FILE names others).
base::Result<http::AsyncPlace> place_of(const RestEndpoint& endpoint);

}  // namespace muster::engine::slurm
