// Which engine the jobs of a folder run on, so that no server with another one takes them for lost
// and starts them a second time, while they go on.
//
// Blocking.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "store/store.h"

namespace muster::service {

/// kConflict: the folder's note names another engine, and jobs of the store have been started there
/// and not ended.
base::Result<void> check_engine(const std::filesystem::path& jobs_folder, const std::string& engine,
                                store::Store& store);

/// Notes the engine, for commands that start a server there and for the next one.
base::Result<void> note_engine(const std::filesystem::path& jobs_folder, const std::string& engine);

/// Nothing runs any more: any engine will do.
void forget_engine(const std::filesystem::path& jobs_folder);

}  // namespace muster::service
