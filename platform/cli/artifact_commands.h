// What is wanted of the artifacts of a job.
//
// Plain values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/cli.h"
#include "cli/output.h"

namespace muster::cli {

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

}  // namespace muster::cli
