// JSON as Python shows it: Gradient's own program prints dictionaries so.
//
// Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace muster::dialects::gradient {

/// {"a": true} -> {'a': True}. Nothing where `json` is none.
std::optional<std::string> python_literal(std::string_view json);

/// Of a dictionary of texts.
std::string python_literal(const std::map<std::string, std::string>& values);

}  // namespace muster::dialects::gradient
