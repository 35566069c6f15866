// Who this machine and its user are, for the process engine.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace muster::engine {

std::string host_name();

/// The machine's /etc/hosts with these names in front.
std::string hosts_file(const std::vector<std::pair<std::string, std::string>>& names);

/// The login name of this process's user; its number where it has no name.
std::string user_name();

}  // namespace muster::engine
