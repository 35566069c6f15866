// The configuration of a server: a YAML file (docs/configuration.md), and above it what the
// environment and the flags say.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/serve_options.h"

namespace muster::config {

using base::Result;

/// One setting that is not from the file.
struct ServerSetting {
  std::string key;    ///< "limits.request_rate"
  std::string named;  ///< what it came from, for faults: "--request-rate", "MUSTER_STORE"
  std::string text;
};

/// Where the options of a server come from. Kept, for they are read again on SIGHUP.
struct ServerSource {
  std::filesystem::path file;           ///< absolute; empty: there is none
  bool file_was_named = false;          ///< by --config: then it has to be there
  std::filesystem::path folder;         ///< that settings' relative paths are relative to
  std::vector<ServerSetting> settings;  ///< in the order of their precedence, the strongest last
};

/// Reads the file's text over `defaults`; relative paths are relative to `folder`. Pure.
///
/// Errors: kInvalid with every fault at once, in the order of their lines: unknown keys with the
/// nearest name, keys given twice, values that cannot be read.
Result<ServeOptions> parse_server_config(std::string_view text, const std::string& source,
                                         const std::filesystem::path& folder, bool file_was_named,
                                         const ServeOptions& defaults = {});

/// Puts settings over `options`; what is wrong with them comes back. Pure.
std::vector<base::Fault> apply_settings(const ServerSource& source, ServeOptions& options);

/// What does not go together, whatever it came from. Pure.
std::vector<base::Fault> contradictions(const ServeOptions& options);

/// Names server.yaml in this user's configuration folder where no file was named. I/O.
ServerSource with_usual_file(ServerSource source);

/// All of it: the file, if there is one, and the settings. I/O.
Result<ServeOptions> read_server_options(const ServerSource& source);

/// Reads the options again, from where they came; told the reason where they cannot be used.
using ReadAgain = std::function<Result<ServeOptions>()>;

/// What became of the options between two readings. Pure.
struct ConfigChanges {
  std::vector<std::string> taken_over;  ///< names of keys
  std::vector<std::string> need_restart;
};
ConfigChanges changes_between(const ServeOptions& before, const ServeOptions& after);

/// `before` with those values of `after` that a running server takes over. Pure.
ServeOptions with_reloaded(const ServeOptions& before, const ServeOptions& after);

}  // namespace muster::config
