// Rewrites Run:AI's spellings of flags to the form of our parser. "-g 1", "-g=1", "-g1" and "--gpu=1" are
// the same; "--command sh" has a value if the next word is not a flag, else "--command" is a switch;
// "--args -c" always takes the next word. All become "--flag=value".
//
// The words after the name in `exec` are the program, so "--" is inserted. Words after "--" are not
// changed.
//
// Pure.
#pragma once

#include <string>
#include <vector>

namespace muster::dialects::runai {

using Words = std::vector<std::string>;

Words plain_words(Words words);

}  // namespace muster::dialects::runai
