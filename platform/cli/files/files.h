// The commands on files of jobs: cp, artifacts; and the artifacts of a job as the commands of
// dialects need them: all pages of the list, and files of it brought into a folder of this machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/file_wire.h"
#include "base/result.h"
#include "cli/command/call.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/connection/connection.h"

namespace muster::cli::files {

/// PATH here, or JOB:PATH and JOB/TASK:PATH there.
struct CopyPlace {
  std::string job = {};   ///< empty: here
  std::string task = {};  ///< empty: the one that decides
  std::string path;

  bool is_here() const { return job.empty(); }
  bool operator==(const CopyPlace&) const = default;
};

/// A word is a place in a task where a job's name stands before its first ':'; so a file here that
/// is named like that is given as ./a:b. JOB: alone is the working folder of the task.
CopyPlace copy_place_of(std::string_view word);
/// As it would be written.
std::string to_text(const CopyPlace& place);

struct CopyCommand {
  std::vector<CopyPlace> from;
  CopyPlace to;
  std::string project = {};
};

struct ArtifactListCommand {
  std::string name;
  std::string project = {};
  bool checksums = false;
  Output output = Output::kTable;
};

struct ArtifactGetCommand {
  std::string name;
  std::string project = {};
  std::vector<std::string> paths;  ///< files, and folders with all that is in them; empty: all
  std::string folder;              ///< where they go; empty: NAME-artifacts here
};

Result<int> execute(const CopyCommand& command, const Hooks& hooks);
Result<int> execute(const ArtifactListCommand& command, const Hooks& hooks);
Result<int> execute(const ArtifactGetCommand& command, const Hooks& hooks);

// copy.cc
Command copy_command();
// artifacts.cc
Command artifacts_command();

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

}  // namespace muster::cli::files
