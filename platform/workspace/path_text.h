// File names, sizes and counts as text for people.
//
// Pure; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::workspace {

/// A name in single quotes. Control characters and bytes that are not UTF-8 are escaped:
/// 'two\nlines', '\xff'. Two different names never have the same text.
std::string shown(std::string_view name);

/// "512 B", "1.5 GiB": in the largest unit that gives at least 1, rounded up to a tenth.
std::string size_text(int64_t bytes);

/// "1 entry", "12,345 entries".
std::string count_text(size_t count, const std::string& one, const std::string& many);

}  // namespace muster::workspace
