// The command line of a remote shell, as the launchers of the MPIs fill it in for rsh or ssh.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace muster::engine::rsh {

struct Request {
  std::string host;
  std::string command;    ///< for a shell; empty: none was given, a shell reads its input
  bool no_input = false;  ///< -n: the command finds its input at its end

  bool operator==(const Request&) const = default;
};

/// `words`: behind the program's name. Options of rsh and ssh are taken and, but for -n, change
/// nothing: a job says who its tasks run as and where they answer. kInvalid: an option that neither
/// has, one without its value, no host.
base::Result<Request> read_arguments(const std::vector<std::string>& words);

}  // namespace muster::engine::rsh
