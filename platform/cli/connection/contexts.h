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

// Where and by whom a command was called, gathered once so that the rest is a function of values;
// which part of the caller's environment a job gets; and the project that the caller submits to.
// That of the local server is one line in the file "project" of the configuration folder, that of
// any other stands in its context. $MUSTER_PROJECT wins over both.

struct Caller {
  std::string folder;       ///< the current folder
  Environment environment;  ///< all of it
  bool is_root = false;
  base::Time now;
  uid_t user = 0;
  gid_t group = 0;
  /// The project to submit to where nothing else is said: $MUSTER_PROJECT, or that of `muster
  /// project use` with this server; empty: the server's default.
  std::string project = {};
};

/// This process. I/O: reads the environment, the current folder, the clock and the configuration.
///
/// Errors: a configuration that is there but cannot be read. To go on without it would put jobs
/// into a project that was not meant. (That there is no such context is told by whoever needs one.)
/// `context`: what --context says.
base::Result<Caller> this_caller(const std::string& context);

/// Of the caller's environment, what a job gets without asking:
///
///   PATH HOME USER LANG LC_* LD_LIBRARY_PATH PYTHONPATH VIRTUAL_ENV CONDA_*
///   OMP_* CUDA_VISIBLE_DEVICES NCCL_*
///
/// What a program needs to be found and to behave as it does in this shell. Nothing else: a shell
/// holds tokens and passwords, and a job's environment is stored and shown.
Environment inherited_environment(const Environment& all);

/// Empty where none was chosen. Errors: the file is there but cannot be read.
/// `context`: what --context says; where it leads nowhere, none was chosen.
base::Result<std::string> project_in_use(const Environment& environment,
                                         const std::string& context);

/// Keeps `name` as the user's choice for the server that is in use. The folder is made 0700, the
/// file 0600.
base::Result<void> use_project(const std::string& name, const std::string& context);

}  // namespace muster::cli
