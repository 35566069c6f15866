// Values of an enumeration and their names, one list for both directions.
//
// Pure.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace muster::record {

template <class E>
using Named = std::pair<E, std::string_view>;

template <class E>
struct Words {
  std::string_view schema;           ///< its name in the OpenAPI document: "Kind"
  std::span<const Named<E>> values;  ///< each value once, in the order in which help lists them
  std::span<const Named<E>> aliases = {};  ///< understood in job files and flags, never written
  std::string_view help = "";              ///< sentences for the OpenAPI document
};

template <class E>
std::string_view name_in(const Words<E>& words, E value) {
  for (const auto& [candidate, name] : words.values) {
    if (candidate == value) return name;
  }
  return "?";
}

template <class E>
std::optional<E> value_in(const Words<E>& words, std::string_view word) {
  for (const auto& [value, name] : words.values) {
    if (name == word) return value;
  }
  return std::nullopt;
}

/// Uses words_of(const E*), which is found in the namespace of E.
template <class E>
std::string_view word_for(E value) {
  return name_in(words_of(static_cast<const E*>(nullptr)), value);
}
template <class E>
std::optional<E> meant_by(std::string_view word) {
  return value_in(words_of(static_cast<const E*>(nullptr)), word);
}

/// The same, also by an alias, as users write it.
template <class E>
std::optional<E> typed_as(std::string_view word) {
  for (const auto& [value, alias] : words_of(static_cast<const E*>(nullptr)).aliases) {
    if (alias == word) return value;
  }
  return meant_by<E>(word);
}

}  // namespace muster::record
