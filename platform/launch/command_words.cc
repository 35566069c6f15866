#include "launch/command_words.h"

#include <algorithm>

namespace muster::launch {

std::vector<std::string_view> words_of(const std::vector<std::string>& command) {
  constexpr const char* kBetween = " \t\n;&|(";
  std::vector<std::string_view> words;
  for (const std::string_view argument : command) {
    size_t at = 0;
    while (at < argument.size()) {
      const size_t begin = argument.find_first_not_of(kBetween, at);
      if (begin == std::string_view::npos) break;
      const size_t end = std::min(argument.find_first_of(kBetween, begin), argument.size());
      words.push_back(argument.substr(begin, end - begin));
      at = end;
    }
  }
  return words;
}

bool is_file_named(std::string_view word, std::string_view name) {
  constexpr const char* kQuotes = "'\"";
  word = word.substr(0, word.find_last_not_of(kQuotes) + 1);
  word.remove_prefix(word.find_last_of("/='\"") + 1);
  return word == name;
}

}  // namespace muster::launch
