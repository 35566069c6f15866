// A .zip, .tar or .tar.gz unpacked into a folder, and nothing of it anywhere else.
//
// Blocking; I/O. libarchive reads and writes; what it is given was looked at before.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace muster::workspace {

using base::Result;

/// `folder` is there, empty, and its path has no link in it.
///
/// kInvalid, all faults at once: it is no archive, or a broken or encrypted one; entries or links
/// lead out of it, or are devices; it holds more than `most_bytes`, whatever it says of itself.
Result<void> unpack_archive(const std::filesystem::path& archive,
                            const std::filesystem::path& folder, int64_t most_bytes);

}  // namespace muster::workspace
