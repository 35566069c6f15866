#include "arguments.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace bench {

Arguments::Arguments(int argc, char** argv) {
  for (int i = 1; i < argc; i++) {
    const std::string word = argv[i];
    const std::size_t equals = word.find('=');
    if (!word.starts_with("--") || equals == std::string::npos) fail("not --name=value: " + word);
    words_[word.substr(2, equals - 2)] = word.substr(equals + 1);
  }
}

std::string Arguments::text(const std::string& name, const std::string& otherwise) const {
  const auto found = words_.find(name);
  return found == words_.end() ? otherwise : found->second;
}

std::uint64_t Arguments::number(const std::string& name, std::uint64_t otherwise) const {
  const auto found = words_.find(name);
  return found == words_.end() ? otherwise : std::strtoull(found->second.c_str(), nullptr, 10);
}

std::vector<std::string> Arguments::list(const std::string& name,
                                         const std::string& otherwise) const {
  std::vector<std::string> parts;
  std::istringstream words(text(name, otherwise));
  for (std::string part; std::getline(words, part, ',');) parts.push_back(part);
  return parts;
}

void fail(const std::string& why) {
  std::fprintf(stderr, "bench: %s\n", why.c_str());
  // Not exit(): functions that the peers have registered could wait for lost ranks.
  std::_Exit(1);
}

}  // namespace bench
