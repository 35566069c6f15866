// The side of /generated that Muster's own remote shell reads (engine/rsh/): which hosts there are,
// and the key that both ends have.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "launch/ssh_files.h"

namespace muster::launch {

/// Relative to the generated folder: its two files lie there.
inline constexpr const char* kRshFolder = "rsh";

/// A line each: NAME ADDRESS PORT.
std::string rsh_hosts(const std::vector<ShellHost>& hosts);

/// The far end, in inetd mode: `folder` is the generated one as the task sees it, commands run in
/// `working_folder`.
std::vector<std::string> rsh_service(const std::string& remote_shell, const std::string& folder,
                                     const std::string& working_folder);

}  // namespace muster::launch
