// Which hosts a job has and where each answers: the file "hosts" of the folder rsh, a line each:
//
//   dist-worker-0 127.16.0.2 10022
//
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::engine::rsh {

struct Host {
  std::string name;
  std::string address;  ///< a number or a name
  int port = 0;

  bool operator==(const Host&) const = default;
};

/// kInvalid, naming the line.
base::Result<std::vector<Host>> read_hosts(std::string_view text);

/// kNotFound, saying which there are.
base::Result<Host> find_host(const std::vector<Host>& hosts, std::string_view name);

}  // namespace muster::engine::rsh
