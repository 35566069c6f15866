// The servers that a user works with, by name, and which of them is in use.
//
//   {"version": 1, "in_use": "lab", "contexts": [{"name": "lab", "server": "https://lab:7443",
//   ...}]}
//
// `local` is always there and in no file: this user's own server, on its unix socket, started when
// it is needed.
//
// Values; pure. The file they are kept in is contexts_file.h's matter.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace muster::cli {

using base::Result;

inline constexpr const char* kLocalContext = "local";
/// The one that $MUSTER_SERVER and $MUSTER_TOKEN make; in no file either.
inline constexpr const char* kEnvironmentContext = "environment";

struct Context {
  std::string name = kLocalContext;
  std::string server = {};       ///< https://HOST:PORT; empty: the local server
  std::string fingerprint = {};  ///< of the certificate that is trusted; empty: by authorities
  std::string ca_file = {};      ///< those authorities; empty: the system's
  std::string user = {};
  std::string token = {};                  ///< a secret
  std::optional<base::Time> expires = {};  ///< of the token
  std::string project = {};                ///< in use there; empty: the server's default

  bool is_local() const { return server.empty(); }
  bool operator==(const Context&) const = default;
};

struct Contexts {
  std::string in_use = kLocalContext;
  std::vector<Context> known;  ///< but for the local one, in the order they were made

  const Context* find(std::string_view name) const;
  Context* find(std::string_view name);
  /// The names of all of them, `local` first.
  std::vector<std::string> names() const;

  bool operator==(const Contexts&) const = default;
};

/// The context of this name, `local` too. kNotFound with the nearest name.
Result<Context> context_of(const Contexts& contexts, const std::string& name);

/// kInvalid where a context cannot be called so: letters, digits, '.', '_' and '-', not beginning
/// with '-', at most 64 of them, and neither of the two names that have a meaning.
Result<void> check_context_name(const std::string& name);

/// A name for the context of a server that nobody named: its host, and its port unless it is the
/// usual one.
std::string context_name_for(const std::string& host, int port);

std::string contexts_to_json(const Contexts& contexts);
/// kInvalid: it is not what contexts_to_json() writes. The error says where, and shows no value.
Result<Contexts> contexts_from_json(std::string_view text);

}  // namespace muster::cli
