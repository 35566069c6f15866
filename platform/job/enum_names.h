// Values of an enum and their names, one table for both directions.
//
// Pure.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace muster::job {

template <class Enum, size_t N>
using Names = std::array<std::pair<Enum, std::string_view>, N>;

template <class Enum, size_t N>
std::string_view name_in(const Names<Enum, N>& names, Enum value) {
  for (const auto& [candidate, name] : names) {
    if (candidate == value) return name;
  }
  return "?";
}

template <class Enum, size_t N>
std::optional<Enum> value_in(const Names<Enum, N>& names, std::string_view wanted) {
  for (const auto& [value, name] : names) {
    if (name == wanted) return value;
  }
  return std::nullopt;
}

}  // namespace muster::job
