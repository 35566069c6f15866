// The commands on files of jobs: cp, artifacts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/call.h"
#include "cli/command_tree.h"
#include "cli/output.h"

namespace muster::cli {

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

}  // namespace muster::cli
