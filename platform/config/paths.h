// The places of the server's state and socket. The command line and the server use the same rule.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster::config {

using base::Result;

using Environment = std::map<std::string, std::string>;

/// NAME=value lines as a map; the last value of a name counts, lines without '=' are ignored.
Environment environment_of(const std::vector<std::string>& lines);

struct Paths {
  std::filesystem::path state_folder;  ///< jobs, logs, keys; 0700
  std::filesystem::path socket;

  std::filesystem::path server_log() const { return state_folder / "server.log"; }
  std::filesystem::path start_lock() const { return state_folder / "start.lock"; }
  /// Locked by the server that uses the folder.
  std::filesystem::path server_lock() const { return state_folder / "server.lock"; }
  std::filesystem::path database() const { return state_folder / "muster.db"; }
  /// How its server was started (config::ServerOrigin).
  std::filesystem::path server_origin() const { return state_folder / "server.origin"; }
  /// The port of the web page, while it is open.
  std::filesystem::path page_port() const { return state_folder / "page-port"; }
  std::filesystem::path secret_key() const { return state_folder / "secret.key"; }
  /// The self-signed certificate that a server makes if none is configured.
  std::filesystem::path certificate() const { return state_folder / "tls" / "cert.pem"; }
  std::filesystem::path certificate_key() const { return state_folder / "tls" / "key.pem"; }

  bool operator==(const Paths&) const = default;
};

/// The inputs of the rule, as values. Pure.
struct PathInputs {
  Environment environment;
  std::optional<std::filesystem::path> state_folder;  ///< set explicitly (server --state-dir)
  std::string home_of_user;                           ///< from the user database
  std::function<bool(const std::filesystem::path&)> is_own_folder;
};

/// Uploaded files (workspace/tree_store.h), and the folders of projects that outlive their jobs.
/// They are in the folder of the jobs, because servers that share it share these. Pure. (The names
/// of jobs' folders are longer, so they cannot collide.)
inline std::filesystem::path trees_folder(const std::filesystem::path& jobs_folder) {
  return jobs_folder / "trees";
}
inline std::filesystem::path storage_folder(const std::filesystem::path& jobs_folder) {
  return jobs_folder / "storage";
}

/// The homes of the users of a server for a team.
inline std::filesystem::path homes_folder(const std::filesystem::path& jobs_folder) {
  return jobs_folder / "homes";
}

/// The homes of projects, if the administrator chose one home for each project.
inline std::filesystem::path project_homes_folder(const std::filesystem::path& jobs_folder) {
  return jobs_folder / "project-homes";
}
/// Which user's tasks have which ids.
inline std::filesystem::path id_book(const std::filesystem::path& jobs_folder) {
  return jobs_folder / "ids";
}

/// The name of the engine of the folder's jobs, stored as long as a job may run.
inline std::filesystem::path engine_record(const std::filesystem::path& jobs_folder) {
  return jobs_folder / "engine";
}
/// Its content; empty: the file does not exist. I/O.
std::string recorded_engine(const std::filesystem::path& jobs_folder);

/// The state folder is the first of: `state_folder`, $MUSTER_STATE_DIR, $XDG_STATE_HOME/muster,
/// ~/.local/state/muster. The socket is in it, except for the last two, for which it is in
/// $XDG_RUNTIME_DIR/muster if that folder exists and belongs to the user. Relative paths in XDG's
/// variables are ignored, as its specification requires.
///
/// kInvalid: $MUSTER_STATE_DIR is a relative path, or there is no home folder.
Result<Paths> find_paths(const PathInputs& inputs);

/// find_paths() for this process. I/O.
Result<Paths> paths_here(const std::optional<std::filesystem::path>& state_folder = std::nullopt);

/// The folder of this user's settings: $XDG_CONFIG_HOME/muster, or ~/.config/muster. Empty without
/// a home folder. Pure.
std::filesystem::path find_config_folder(const PathInputs& inputs);

/// find_config_folder() for this process. I/O.
std::filesystem::path config_folder_here();

/// Creates both folders with mode 0700, or checks that they are private to this user.
Result<void> make_folders(const Paths& paths);

}  // namespace muster::config
