// Names of files and their sizes as a person reads them.
//
// Pure; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::workspace {

/// A name in single quotes, with everything that a terminal would obey, or that is no UTF-8, as an
/// escape: 'two\nlines', '\xff'. Two names are never shown the same.
std::string shown(std::string_view name);

/// "512 B", "1.5 GiB": in the largest unit of which there is one, rounded up to a tenth.
std::string size_text(int64_t bytes);

/// "1 entry", "12,345 entries".
std::string count_text(size_t count, const std::string& one, const std::string& many);

}  // namespace muster::workspace
