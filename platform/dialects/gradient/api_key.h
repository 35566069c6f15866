// The key that `gradient apiKey` keeps in ~/.paperspace/config.json, as Gradient's own program
// does; whatever else stands in that file stays there.
//
// Blocking; I/O. The key is in no error.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "cli/connection/contexts.h"

namespace muster::dialects::gradient {

/// Of the user whose environment this is. kInvalid: there is no home folder.
base::Result<std::filesystem::path> config_file(const cli::Environment& environment);

/// Empty where none is kept. kInvalid: the file is not what it should be.
base::Result<std::string> kept_api_key(const std::filesystem::path& file);

/// The folder is made 0700, the file 0600.
base::Result<void> keep_api_key(const std::filesystem::path& file, const std::string& key);

/// Where none is kept, nothing is done.
base::Result<void> forget_api_key(const std::filesystem::path& file);

}  // namespace muster::dialects::gradient
