// Looks a word up in a list.
//
// Pure.
#pragma once

#include <algorithm>
#include <string_view>

namespace muster::control {

template <class Words>
bool is_one_of(std::string_view word, const Words& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace muster::control
