// A .gitignore of a stranger's repository, and a path in it: any rules give an answer in a short
// time. The input is the path, a NUL, and the rules.
#include "workspace/ignore_rules.h"

#include <algorithm>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view path = text.substr(0, text.find('\0'));
  muster::workspace::IgnoreRules rules;
  rules.add_file("", text.substr(std::min(path.size() + 1, text.size())));
  rules.add_file(path.substr(0, path.find('/')), text);
  const bool as_file = rules.leaves_out(path, false);
  // A second call gives the same answer.
  if (rules.leaves_out(path, false) != as_file) __builtin_trap();
  [[maybe_unused]] const bool as_folder = rules.leaves_out(path, true);
  return 0;
}
