// What git's last lines mean for who wanted a workspace.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "workspace/flag_names.h"

namespace muster::workspace {

struct GitQuestion {
  std::string url;
  std::string ref;
  bool had_password = false;
  bool over_ssh = false;
  FlagNames flags;  ///< which advice names
};

/// With git's own lines as its faults.
base::Error git_failure(const GitQuestion& question, const std::vector<std::string>& said);

/// The server hands out whole histories only.
bool wants_whole_history(const std::vector<std::string>& said);

}  // namespace muster::workspace
