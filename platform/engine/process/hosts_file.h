// The /etc/hosts of a task in a sandbox. It is a file of the task's folder on this machine, out of
// the task's reach, and mounted over the machine's own: the mount is of that very file, so it can
// grow but not be replaced.
//
// I/O; blocking.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace muster::engine {

using HostNames = std::vector<std::pair<std::string, std::string>>;  ///< name -> address

/// The machine's /etc/hosts with these names in front.
std::string hosts_file(const HostNames& names);

/// Adds those that it lacks, at its end. Whoever reads meanwhile finds whole lines. kConflict: the
/// file has a name under another address, which stands before; nothing was added.
base::Result<void> add_hosts(const std::filesystem::path& file, const HostNames& names);

}  // namespace muster::engine
