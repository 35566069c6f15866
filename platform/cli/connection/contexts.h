// Contexts: the servers of a user, by name, and the one that a command uses. The first of:
//
//   --context NAME
//   $MUSTER_SERVER with $MUSTER_TOKEN (and $MUSTER_FINGERPRINT), for programs
//   $MUSTER_CONTEXT
//   the current context (`muster context use`)
//   local: the user's own server on a unix socket, started on demand; it always exists
//
// The other contexts are in contexts.json of the configuration folder. It contains tokens, so other
// users must not be able to read it:
//
//   {"version": 1, "in_use": "lab",
//    "contexts": [{"name": "lab", "server": "https://lab:7443", ...}]}
//
// Commands may read and change the file at the same time: it is replaced as a whole, and a change
// holds a lock while it reads and writes.
//
// Also here: the caller of a command, and the project in use.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "config/paths.h"

namespace muster::cli {

using config::Environment;

using base::Result;

inline constexpr const char* kLocalContext = "local";
/// The context of $MUSTER_SERVER and $MUSTER_TOKEN; it is in no file.
inline constexpr const char* kEnvironmentContext = "environment";

struct Context {
  std::string name = kLocalContext;
  std::string server = {};       ///< https://HOST:PORT; empty: the local server
  std::string fingerprint = {};  ///< of the trusted certificate; empty: authorities are trusted
  std::string ca_file = {};      ///< the trusted authorities; empty: the system's
  std::string user = {};
  std::string token = {};                  ///< a secret
  std::optional<base::Time> expires = {};  ///< of the token
  std::string project = {};                ///< the project in use; empty: the server's default

  bool is_local() const { return server.empty(); }
  bool operator==(const Context&) const = default;
};

struct Contexts {
  std::string in_use = kLocalContext;
  std::vector<Context> known;  ///< without the local one, in order of creation

  const Context* find(std::string_view name) const;
  Context* find(std::string_view name);
  /// All names, `local` first.
  std::vector<std::string> names() const;

  bool operator==(const Contexts&) const = default;
};

/// The context of this name, including `local`. Errors: kNotFound, with the nearest name.
Result<Context> context_of(const Contexts& contexts, const std::string& name);

/// Errors: kInvalid: a name consists of at most 64 letters, digits, '.', '_' and '-', does not begin
/// with '-', and is not one of the two reserved names.
Result<void> check_context_name(const std::string& name);

/// The default name of a server's context: its host, and its port unless that is the default.
std::string context_name_for(const std::string& host, int port);

std::string contexts_to_json(const Contexts& contexts);
/// Errors: kInvalid, with the path of the field, without its value.
Result<Contexts> contexts_from_json(std::string_view text);

/// No contexts if there is no file, or the folder is not readable.
///
/// Errors: kRefused: other users can read the file, or own it; kInvalid: it is damaged. Both contain
/// advice.
Result<Contexts> read_contexts(const std::filesystem::path& folder);

/// Reads the file, applies `change` and writes the file; writes nothing if `change` fails. Creates the
/// folder if necessary. Errors: those of read_contexts() and of `change`; kInvalid: `folder` is empty.
Result<void> change_contexts(const std::filesystem::path& folder,
                             const std::function<Result<void>(Contexts&)>& change);

/// Removes a context; if it was the current one, `local` becomes the current one. Errors: kNotFound;
/// kInvalid for `local`.
Result<void> forget_context(const std::filesystem::path& folder, const std::string& name);

/// The context that a command uses. Pure, except `read`, which is called if necessary.
///
/// Errors: those of `read`; kNotFound: no context has the name; kInvalid: $MUSTER_SERVER is not an
/// address, or there is no token.
Result<Context> choose_context(const std::string& flag, const Environment& environment,
                               const std::function<Result<Contexts>()>& read);

/// choose_context() for this process. I/O.
Result<Context> chosen_context(const std::string& flag);

/// The variable that overrides the current context, such as "MUSTER_SERVER"; or empty. Pure.
std::string overriding_variable(const Environment& environment);

/// The caller of a command, read once, so that the rest is a function of values.
struct Caller {
  std::string folder;       ///< the current folder
  Environment environment;  ///< all of it
  bool is_root = false;
  base::Time now;
  uid_t user = 0;
  gid_t group = 0;
  /// The project in use: $MUSTER_PROJECT, or that of `muster project use` with this server; empty: the
  /// server's default. For the local server it is in the file "project" of the configuration folder,
  /// for other servers in the context.
  std::string project = {};
};

/// This process. I/O: reads the environment, the current folder, the clock and the configuration.
/// `context`: the value of --context.
///
/// Errors: the configuration exists but cannot be read; ignoring it could submit jobs to a wrong
/// project. An unknown context is not an error here.
base::Result<Caller> this_caller(const std::string& context);

/// The part of the caller's environment that every job gets:
///
///   PATH HOME USER LANG LC_* LD_LIBRARY_PATH PYTHONPATH VIRTUAL_ENV CONDA_*
///   OMP_* CUDA_VISIBLE_DEVICES NCCL_*
///
/// These let a program be found and behave as in this shell. Nothing else: a shell may contain tokens
/// and passwords, and a job's environment is stored and shown.
Environment inherited_environment(const Environment& all);

/// The project in use; empty if none is chosen or the context is unknown. `context`: the value of
/// --context. Errors: the file exists but cannot be read.
base::Result<std::string> project_in_use(const Environment& environment,
                                         const std::string& context);

/// Stores `name` as the project in use for the current server. Creates the folder with mode 0700, the
/// file with 0600.
base::Result<void> use_project(const std::string& name, const std::string& context);

}  // namespace muster::cli
