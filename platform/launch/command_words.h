// The words of a command line, for guesses at what it runs.
//
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::launch {

/// Of all arguments; of one that is a script ("sh -c SCRIPT"), those of the script too. They point
/// into `command`.
std::vector<std::string_view> words_of(const std::vector<std::string>& command);

/// Whether a word is a file of this name, whatever its folder: /usr/bin/NAME, --option=NAME,
/// 'NAME'.
bool is_file_named(std::string_view word, std::string_view name);

}  // namespace muster::launch
