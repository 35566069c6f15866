// Who this machine and its user are, for the process engine.
#pragma once

#include <string>

namespace muster::engine {

std::string host_name();

/// The login name of this process's user; its number where it has no name.
std::string user_name();

/// The home folder of this process's user, as the user database has it; empty where it has none.
std::string account_home();

}  // namespace muster::engine
