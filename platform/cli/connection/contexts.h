// The servers that a user works with, by name, and which of them a command talks to. First of:
//
//   --context NAME
//   $MUSTER_SERVER with $MUSTER_TOKEN (and $MUSTER_FINGERPRINT): for programs, without any file
//   $MUSTER_CONTEXT
//   the one in use (`muster context use`)
//   local: this user's own server, on its unix socket, started when it is needed; always there
//
// The others are kept in contexts.json of the configuration folder. It holds tokens, so it must be
// nobody else's to read:
//
//   {"version": 1, "in_use": "lab",
//    "contexts": [{"name": "lab", "server": "https://lab:7443", ...}]}
//
// Many commands may read and change the file at the same time: it is replaced as a whole, and a
// change holds a lock from its reading to its writing.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/connection/caller.h"

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

/// None where there is no file, or the folder is not this user's to read.
///
/// Errors: kRefused where others may read it, or it is another user's; kInvalid where it is
/// damaged. Both say how to mend it.
Result<Contexts> read_contexts(const std::filesystem::path& folder);

/// Reads, has `change` change, and writes; nothing is written where either fails. The folder is
/// made where it is missing. Errors: those of read_contexts() and of `change`; kInvalid: there is
/// no folder (`folder` is empty).
Result<void> change_contexts(const std::filesystem::path& folder,
                             const std::function<Result<void>(Contexts&)>& change);

/// Without this context; where it was in use, the local one is from then on. kNotFound; kInvalid
/// for the local one.
Result<void> forget_context(const std::filesystem::path& folder, const std::string& name);

/// Pure but for `read`, which is called where the choice needs it.
///
/// Errors: those of `read`; kNotFound: there is none of that name; kInvalid: $MUSTER_SERVER without
/// a token, or with what is no address.
Result<Context> choose_context(const std::string& flag, const Environment& environment,
                               const std::function<Result<Contexts>()>& read);

/// choose_context() for this process. I/O.
Result<Context> chosen_context(const std::string& flag);

/// The variable that wins over the context in use, where one does: "MUSTER_SERVER"; or empty. Pure.
std::string overriding_variable(const Environment& environment);

}  // namespace muster::cli
