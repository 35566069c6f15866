// What becomes of a project's files when the project is no more: what it kept in its storage is set
// aside for the administrator, who alone can tell whether it is wanted, and is out of reach of a
// new project of the same name.
//
// I/O.
#pragma once

#include <filesystem>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace muster::service {

/// Moves STORAGE/PROJECT to STORAGE/.removed/PROJECT-TIME. A project that kept nothing is no error.
base::Result<void> set_storage_aside(const std::filesystem::path& storage,
                                     const std::string& project, base::Time now);

}  // namespace muster::service
