// Facts of this machine: its name and the user of this process. The GPUs that an administrator
// declares for it are described in job/declared_gpus.h.
#pragma once

#include <string>

#include "job/declared_gpus.h"

namespace muster::engine {

std::string host_name();

/// The login name of this process's user; the user's id if it has no name.
std::string user_name();

/// The home folder of this process's user in the user database; empty: unknown.
std::string account_home();

/// The most GPUs of a node, found or declared.
inline constexpr int kMaxGpus = job::kMostDeclaredGpus;

using job::DeclaredGpus;
using job::parse_declared_gpus;

}  // namespace muster::engine
