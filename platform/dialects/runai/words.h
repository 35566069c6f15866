// Brings the words of a command line into the form that the parser has. Run:AI's own program takes
// more spellings than one: "-g 1", "-g=1", "-g1" and "--gpu=1" are the same; "--command sh" has a
// value where a word follows that is no flag, and "--command" is a switch where none does; "--args
// -c" takes whatever follows. All become "--flag=value".
//
// What follows the name of `exec` is the program to run, so a "--" is put there; behind "--"
// nothing is changed.
//
// Pure.
#pragma once

#include <string>
#include <vector>

namespace muster::dialects::runai {

using Words = std::vector<std::string>;

Words plain_words(Words words);

}  // namespace muster::dialects::runai
