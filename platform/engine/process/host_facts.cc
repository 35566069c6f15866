#include "engine/process/host_facts.h"

#include <pwd.h>
#include <unistd.h>

#include <array>

#include "base/files.h"

namespace muster::engine {

std::string host_name() {
  std::array<char, 65> buffer{};
  ::gethostname(buffer.data(), buffer.size() - 1);
  return buffer.data();
}

std::string hosts_file(const std::vector<std::pair<std::string, std::string>>& names) {
  std::string text;
  for (const auto& [name, address] : names)
    text.append(address).append(" ").append(name).append("\n");
  const auto machine = base::read_file("/etc/hosts");
  // A bare system may have no such file, and programs ask for localhost all the same.
  return text + (machine ? *machine : "127.0.0.1 localhost\n");
}

std::string user_name() {
  const passwd* entry = ::getpwuid(::geteuid());
  return entry == nullptr ? std::to_string(::geteuid()) : entry->pw_name;
}

}  // namespace muster::engine
