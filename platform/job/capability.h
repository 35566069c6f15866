// The rights of root's that Linux tells apart (capabilities(7)), by their names.
//
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::job {

/// Those that Linux knows, as "SYS_PTRACE", sorted.
const std::vector<std::string>& capabilities();

/// As specs have them: "cap_sys_ptrace" is SYS_PTRACE.
std::string capability_of(std::string_view written);

/// The same of each.
std::vector<std::string> capabilities_of(const std::vector<std::string>& written);

}  // namespace muster::job
