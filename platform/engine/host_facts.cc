#include "engine/host_facts.h"

#include <pwd.h>
#include <unistd.h>

#include <array>

namespace muster::engine {

std::string host_name() {
  std::array<char, 65> buffer{};
  ::gethostname(buffer.data(), buffer.size() - 1);
  return buffer.data();
}

std::string account_home() {
  const passwd* entry = ::getpwuid(::geteuid());
  return entry == nullptr ? std::string() : entry->pw_dir;
}

std::string user_name() {
  const passwd* entry = ::getpwuid(::geteuid());
  return entry == nullptr ? std::to_string(::geteuid()) : entry->pw_name;
}

}  // namespace muster::engine
