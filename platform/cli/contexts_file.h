// The file that contexts are kept in: contexts.json of the configuration folder. It holds tokens,
// so it must be nobody else's to read.
//
// I/O; blocking. Many commands may read and change it at the same time: it is replaced as a whole,
// and a change holds a lock from its reading to its writing.
#pragma once

#include <filesystem>
#include <functional>

#include "base/result.h"
#include "cli/contexts.h"

namespace muster::cli {

/// None where there is no file, or the folder is not this user's to read.
///
/// Errors: kRefused where others may read it, or it is another user's; kInvalid where it is
/// damaged. Both say how to mend it.
Result<Contexts> read_contexts(const std::filesystem::path& folder);

/// Reads, has `change` change, and writes; nothing is written where either fails. The folder is
/// made where it is missing. Errors: those of read_contexts() and of `change`; kInvalid: there is
/// no folder (`folder` is empty).
Result<void> change_contexts(const std::filesystem::path& folder,
                             const std::function<Result<void>(Contexts&)>& change);

/// Without this context; where it was in use, the local one is from then on. kNotFound; kInvalid
/// for the local one.
Result<void> forget_context(const std::filesystem::path& folder, const std::string& name);

}  // namespace muster::cli
