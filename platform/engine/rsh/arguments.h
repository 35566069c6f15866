// The command line of a remote shell, and the hosts of a job. MPI launchers run muster-rsh in the
// place of rsh or ssh.
//
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::engine::rsh {

struct Request {
  std::string host;
  std::string command;    ///< for a shell; empty: an interactive shell reads its input
  bool no_input = false;  ///< -n: the command gets an empty input

  bool operator==(const Request&) const = default;
};

/// `words`: the arguments after the program's name. Options of rsh and ssh are accepted; all but -n
/// have no effect, because the job determines the user and port of each task. kInvalid: an unknown
/// option, an option without its value, or no host.
base::Result<Request> read_arguments(const std::vector<std::string>& words);

/// A host of the job. The file "hosts" of the folder rsh has a line for each:
///
///   dist-worker-0 127.16.0.2 10022
struct Host {
  std::string name;
  std::string address;  ///< an IP address or a name
  int port = 0;

  bool operator==(const Host&) const = default;
};

/// Parses the file. kInvalid: a malformed line, which the error names.
base::Result<std::vector<Host>> read_hosts(std::string_view text);

/// kNotFound; the error lists the hosts of the job.
base::Result<Host> find_host(const std::vector<Host>& hosts, std::string_view name);

}  // namespace muster::engine::rsh
