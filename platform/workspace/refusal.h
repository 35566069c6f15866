// Why a folder cannot be sent, in words: what in it cannot, and what makes it too large.
//
// Pure. Private to the scan.
#pragma once

#include <filesystem>
#include <optional>

#include "base/error.h"
#include "workspace/scan.h"
#include "workspace/walk.h"

namespace muster::workspace {

/// Nothing where all of it can be sent.
std::optional<base::Error> refusal_of(const std::filesystem::path& folder, const Walk& walk,
                                      const ScanOptions& options);

}  // namespace muster::workspace
