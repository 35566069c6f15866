// The key that `gradient apiKey` stores in ~/.paperspace/config.json, as Gradient's own program does.
// Other content of the file is kept.
//
// Blocking; I/O. Errors never contain the key.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "cli/connection/contexts.h"

namespace muster::dialects::gradient {

/// The file of the user with this environment. Errors: kInvalid: there is no home folder.
base::Result<std::filesystem::path> config_file(const cli::Environment& environment);

/// The stored key, or empty. Errors: kInvalid: the file is malformed.
base::Result<std::string> kept_api_key(const std::filesystem::path& file);

/// Stores the key; creates the folder with mode 0700, the file with 0600.
base::Result<void> keep_api_key(const std::filesystem::path& file, const std::string& key);

/// Removes the stored key, if there is one.
base::Result<void> forget_api_key(const std::filesystem::path& file);

}  // namespace muster::dialects::gradient
