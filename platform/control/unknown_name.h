// Names in sentences, and the error for an unknown name, which suggests the nearest known one.
//
// Pure.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace muster::control {

/// The whole name, as it is; base::in_quotes() shortens a long one and replaces what is not text.
inline std::string name_in_quotes(const std::string& name) {
  return "'" + name + "'";
}

/// kNotFound. `kind`: "job"; `otherwise`: what to do where no known name is near.
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
