#include "engine/process/account_files.h"

namespace muster::engine {

std::string with_plain_shell(std::string_view passwd, std::string_view user) {
  std::string text;
  while (!passwd.empty()) {
    const size_t end = passwd.find('\n');
    std::string_view line = passwd.substr(0, end);
    passwd.remove_prefix(end == std::string_view::npos ? passwd.size() : end + 1);
    const bool own = line.starts_with(user) && line.substr(user.size()).starts_with(':');
    if (own) line = line.substr(0, line.rfind(':') + 1);
    text += line;
    text += own ? "/bin/sh\n" : "\n";
  }
  return text;
}

std::string unlocked_shadow(std::string_view user) {
  return std::string(user) + ":*:1:0:99999:7:::\n";
}

}  // namespace muster::engine
