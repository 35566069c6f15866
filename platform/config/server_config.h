// The configuration of a server: a YAML file (docs/configuration.md), overridden by environment
// variables and flags.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/paths.h"
#include "config/serve_options.h"

namespace muster::config {

using base::Result;

/// A setting from a variable or a flag.
struct ServerSetting {
  std::string key;    ///< "limits.request_rate"
  std::string named;  ///< the source, for faults: "--request-rate", "MUSTER_STORE"
  std::string text;
};

/// The sources of a server's options. Kept, because they are read again on SIGHUP.
struct ServerSource {
  std::filesystem::path file;           ///< absolute; empty: none
  bool file_was_named = false;          ///< by --config: the file must exist
  std::filesystem::path folder;         ///< the base of relative paths in settings
  std::vector<ServerSetting> settings;  ///< in ascending order of precedence
};

/// Reads the file's text; `defaults` has the other values; relative paths are relative to `folder`.
/// Pure.
///
/// Errors: kInvalid with every fault at once, in the order of their lines: unknown keys with the
/// nearest name, keys given twice, values that cannot be read.
Result<ServeOptions> parse_server_config(std::string_view text, const std::string& source,
                                         const std::filesystem::path& folder, bool file_was_named,
                                         const ServeOptions& defaults = {});

/// Applies settings to `options`; returns their faults. Pure.
std::vector<base::Fault> apply_settings(const ServerSource& source, ServeOptions& options);

/// Faults of options that cannot be used together, whatever their source. Pure.
std::vector<base::Fault> contradictions(const ServeOptions& options);

/// Sets server.yaml in this user's configuration folder if no file was named. I/O.
ServerSource with_usual_file(ServerSource source);

/// Reads the file, if there is one, and applies the settings. I/O.
///
/// Errors: kInvalid: the file cannot be read, or was named and is missing; those of
/// parse_server_config(); faults of the settings.
Result<ServeOptions> read_server_options(const ServerSource& source);

/// The values of the keys that an environment variable MUSTER_* can set, by variable and in one
/// spelling, so that two servers can be compared. Without the state folder, which chooses the server,
/// and without passwords. Pure.
std::map<std::string, std::string> settings_of_variables(const ServeOptions& options);

/// How the server of a state folder was started. A server that is started with less may not use the
/// folder: it would lack the configuration, run the jobs of a team without isolation, or begin a
/// second database. Kept in the folder (Paths::server_origin()). Without the file, the server is
/// private, and any command starts it.
struct ServerOrigin {
  std::string config = {};   ///< the file of --config; empty: none was named
  bool listens = false;      ///< for a team
  bool on_postgres = false;  ///< its database
  bool is_service = false;   ///< a service manager started it
  /// The file of the certificate that it uses; empty: its own, Paths::certificate().
  std::string certificate = {};

  bool is_private() const { return config.empty() && !listens && !on_postgres; }
  bool operator==(const ServerOrigin&) const = default;
};

/// Pure.
ServerOrigin origin_of(const ServeOptions& options, bool is_service);

/// The origin of a server of these options that is to use a folder of `recorded` origin: the file
/// that the server there was given counts as given if it is the usual file of this one too. Pure.
ServerOrigin origin_there(const ServeOptions& options, bool is_service,
                          const ServerOrigin& recorded);

/// Of an error: the folder belongs to a server that was started otherwise.
struct StartedOtherwise : base::ErrorDetail {};

/// Whether a server of `own` origin may use the folder of a server of `recorded` origin. Pure.
/// kConflict with StartedOtherwise, with advice how to start it.
Result<void> check_origin(const std::filesystem::path& state_folder, const ServerOrigin& recorded,
                          const ServerOrigin& own);

/// The origin in `file`. A damaged file counts as that of a server that listens. I/O.
ServerOrigin recorded_origin(const std::filesystem::path& file);

/// Notes the origin in `file`, or removes it if the server is private. I/O.
Result<void> note_origin(const std::filesystem::path& file, const ServerOrigin& origin);

/// The file of the certificate of a folder's server: the one that `source`, read as `options`, names,
/// or else the one that the server there used last. I/O.
std::filesystem::path certificate_file(const ServerSource& source, const ServeOptions& options,
                                       const Paths& paths);

/// Reads the options again from the same sources. Gets the reason if they cannot be applied.
using ReadAgain = std::function<Result<ServeOptions>()>;

/// The differences between two readings of the options. Pure.
struct ConfigChanges {
  std::vector<std::string> taken_over;  ///< names of keys
  std::vector<std::string> need_restart;
};
ConfigChanges changes_between(const ServeOptions& before, const ServeOptions& after);

/// `before` with those values of `after` that a running server can apply. Pure.
ServeOptions with_reloaded(const ServeOptions& before, const ServeOptions& after);

}  // namespace muster::config
