// Names in messages, and the error for an unknown name, which suggests the nearest known name.
//
// Pure.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace muster::control {

/// How many names are compared with a misspelled one: the latest.
inline constexpr size_t kMostComparedNames = 10'000;

/// The whole name, unchanged; base::in_quotes() shortens long names and replaces control
/// characters.
inline std::string name_in_quotes(const std::string& name) {
  return "'" + name + "'";
}

/// kNotFound. `kind`: "job"; `otherwise`: the advice if no known name is similar.
base::Error unknown_name(const std::string& kind, const std::string& name,
                         const std::vector<std::string>& known, const std::string& otherwise);

// Looks a word up in a list.
//
// Pure.

template <class Words>
bool is_one_of(std::string_view word, const Words& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace muster::control
