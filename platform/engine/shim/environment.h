// Environments as programs have them: "NAME=value", each name once.
//
// Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace muster::engine {

/// Of a name that is in both, the second's value.
std::vector<std::string> merged(const std::vector<std::string>& environment,
                                const std::map<std::string, std::string>& more);
std::vector<std::string> merged(const std::vector<std::string>& environment,
                                const std::vector<std::string>& more);

}  // namespace muster::engine
