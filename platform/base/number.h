// A text that is a number and nothing else.
//
// Pure; thread-safe.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace muster::base {

/// The number that `text` is; nothing where anything stands beside it ("+1", " 1", "1x"), or where
/// it does not fit.
template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number number{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc{} || end != last) return std::nullopt;
  return number;
}

}  // namespace muster::base
