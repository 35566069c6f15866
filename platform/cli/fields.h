// "KEY    value" lines at the head of a page.
//
// Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace muster::cli {

/// Keys are padded to one width; entries with an empty value are left out.
std::string fields(const std::vector<std::pair<std::string, std::string>>& entries);

}  // namespace muster::cli
