// The artifacts of a job, as commands of every dialect need them: all pages of the list, and files
// of it brought into a folder of this machine.
//
// Blocking; I/O.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/artifact_wire.h"
#include "base/result.h"
#include "cli/connection.h"
#include "cli/files.h"

namespace muster::cli {

/// All whose paths begin with `prefix`.
Result<api::ArtifactPage> all_artifacts(Connection& connection, const std::string& job,
                                        const api::ArtifactQuery& query);

struct FetchedArtifacts {
  size_t files = 0;
  int64_t bytes = 0;
  size_t here_already = 0;
  size_t left_out = 0;  ///< links, devices and their like, each said on standard error
  size_t failed = 0;    ///< each said on standard error
};

/// Fetches what the command names. Errors: it names what is not there; nothing can be written.
Result<FetchedArtifacts> fetch_artifacts(Connection& connection, const ArtifactGetCommand& command,
                                         const std::string& program);

/// A path for a person's eyes: as it is where that is harmless, else in quotes with escapes.
std::string readable_path(const std::string& path);

}  // namespace muster::cli
