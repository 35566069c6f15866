#include "engine/shim/environment.h"

namespace muster::engine {

std::vector<std::string> merged(const std::vector<std::string>& environment,
                                const std::map<std::string, std::string>& more) {
  std::vector<std::string> all;
  for (const std::string& entry : environment) {
    if (more.count(entry.substr(0, entry.find('='))) == 0) all.push_back(entry);
  }
  for (const auto& [name, value] : more) all.push_back(name + "=" + value);
  return all;
}

std::vector<std::string> merged(const std::vector<std::string>& environment,
                                const std::vector<std::string>& more) {
  std::map<std::string, std::string> named;
  for (const std::string& entry : more) {
    const size_t end = entry.find('=');
    if (end != std::string::npos) named[entry.substr(0, end)] = entry.substr(end + 1);
  }
  return merged(environment, named);
}

}  // namespace muster::engine
