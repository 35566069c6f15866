// The shell that is opened in a task: which one, and what of the caller's goes along.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/connection.h"
#include "job/job.h"

namespace muster::cli {

/// The command line of the shell. The caller's terminal and language go along. Pure.
std::vector<std::string> shell_command(const std::map<std::string, std::string>& caller);

struct ShellWish {
  std::string job;
  std::string task;
  std::string reopen;  ///< the command that opens another, for whoever lost this one
};

/// Runs it; its exit code. kUnavailable where the server went away under it.
base::Result<int> run_shell(Connection& connection, const ShellWish& wish);

}  // namespace muster::cli
