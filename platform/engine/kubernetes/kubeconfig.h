// A kubeconfig: the file by which clients find an API server and identify themselves to it.
//
// Parsing follows kubectl: several files (KUBECONFIG) are merged, the first one that sets a value
// wins, and relative paths are relative to the file that contains them. Stricter than kubectl where
// that would be unsafe or would fail later: a value of the wrong kind is a fault, and a way to
// authenticate that Muster does not support is refused by name.
//
// Pure, except load_kubeconfig(), which reads files. Thread-safe (no state).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace muster::engine::kubernetes {

/// PEM: the text itself, or the file that contains it. Both empty: not given. The text wins.
struct PemSource {
  std::string text;
  std::filesystem::path file;

  bool is_given() const { return !text.empty() || !file.empty(); }
  bool operator==(const PemSource&) const = default;
};

/// A program that prints credentials (client.authentication.k8s.io).
struct ExecPlugin {
  enum class Interactive { kNever, kIfAvailable, kAlways };

  std::string command;  ///< a path, or a name that is searched in PATH
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;  ///< added to the server's
  std::string api_version;     ///< "client.authentication.k8s.io/v1"
  std::string install_hint;    ///< for people, if the program is missing
  bool needs_cluster = false;  ///< gets the cluster in KUBERNETES_EXEC_INFO
  Interactive interactive = Interactive::kIfAvailable;

  bool operator==(const ExecPlugin&) const = default;
};

struct ClusterEntry {
  std::string server;           ///< "https://10.0.0.1:6443", with or without a path
  std::string tls_server_name;  ///< that the certificate must contain; empty: the host of `server`
  bool skips_verification = false;  ///< insecure-skip-tls-verify
  PemSource authorities;            ///< not given: those of the system
  std::string proxy_url;            ///< empty: from the environment
  /// The extension client.authentication.k8s.io/exec, as JSON, for exec plug-ins; empty: none.
  std::string exec_config;

  bool operator==(const ClusterEntry&) const = default;
};

/// Another user as which requests are made.
struct Impersonation {
  std::string user;
  std::string uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;

  bool operator==(const Impersonation&) const = default;
};

struct UserEntry {
  PemSource certificate;  ///< of the client
  PemSource key;
  std::string token;
  std::filesystem::path token_file;  ///< read again and again; wins over `token`
  std::optional<ExecPlugin> exec;
  Impersonation impersonation;
  /// A way to authenticate that Muster does not support: "auth-provider 'gcp'". Using the user is
  /// an error; other users of the file can still be used.
  std::string unsupported;

  bool operator==(const UserEntry&) const = default;
};

struct ContextEntry {
  std::string cluster;
  std::string user;   ///< empty: anonymous
  std::string space;  ///< the namespace; empty: "default"

  bool operator==(const ContextEntry&) const = default;
};

struct Kubeconfig {
  std::string current_context;
  std::map<std::string, ClusterEntry> clusters;
  std::map<std::string, UserEntry> users;
  std::map<std::string, ContextEntry> contexts;
  std::string source;  ///< for errors: the path, or the paths separated by ':'

  bool operator==(const Kubeconfig&) const = default;
};

/// Parses one file. `file`: its path, for errors and for the relative paths in it.
///
/// Errors: kInvalid with all faults, each with its field ("users[0].user.exec.apiVersion") and line.
base::Result<Kubeconfig> parse_kubeconfig(std::string_view text, const std::filesystem::path& file);

/// Merges files; where several set the same value or name, the first wins.
Kubeconfig merged(const std::vector<Kubeconfig>& files);

/// The paths that kubectl would read: `variable` (the value of KUBECONFIG) split at ':', or
/// HOME/.kube/config if it is empty.
std::vector<std::filesystem::path> kubeconfig_paths(const std::string& variable,
                                                    const std::filesystem::path& home);

/// Reads and merges files. A missing file among several is skipped, as kubectl does. kNotFound: no
/// file exists; kInvalid: faults of all files.
base::Result<Kubeconfig> load_kubeconfig(const std::vector<std::filesystem::path>& paths);

/// What one context means.
struct ChosenContext {
  std::string name;
  ClusterEntry cluster;
  UserEntry user;
  std::string space;   ///< the namespace, "default" if the context names none
  std::string source;  ///< of the kubeconfig
};

/// The context `name`, or the current one if `name` is empty. kNotFound: there is no such context;
/// kInvalid: it names a cluster or user that does not exist, or cannot be used. All faults at once.
base::Result<ChosenContext> choose_context(const Kubeconfig& config, const std::string& name);

}  // namespace muster::engine::kubernetes
