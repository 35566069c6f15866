// How the examples read the values of their flags.
#pragma once

#include <charconv>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace muster::examples {

/// Takes the text of a value; false where it is not one. What it is to be written to outlives it.
using Reader = std::function<bool(std::string_view)>;

/// A number in bounds. `Target` is a T or may be without one.
template <typename T, typename Target>
Reader number(Target& target, T least, T most) {
  return [&target, least, most](std::string_view text) {
    T value{};
    const char* const end = text.data() + text.size();
    // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): `end` says where it ends
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    // The comparison is the way round that is false for NaN.
    if (error != std::errc{} || stopped != end || !(value >= least && value <= most)) return false;
    target = value;
    return true;
  };
}

/// Any text but none.
inline Reader text(std::string& target) {
  return [&target](std::string_view value) {
    target = value;
    return !value.empty();
  };
}

/// One of the words of a table, which outlives the reader.
template <typename T, std::size_t Count>
Reader word(T& target, const std::pair<std::string_view, T> (&words)[Count]) {
  return [&target, &words](std::string_view text) {
    for (const auto& [name, value] : words) {
      if (name != text) continue;
      target = value;
      return true;
    }
    return false;
  };
}

}  // namespace muster::examples
