#include "launch/rsh_files.h"

namespace muster::launch {

std::string rsh_hosts(const std::vector<ShellHost>& hosts) {
  std::string text;
  for (const ShellHost& host : hosts) {
    text += host.name + " " + host.address + " " + std::to_string(host.port) + "\n";
  }
  return text;
}

std::vector<std::string> rsh_service(const std::string& remote_shell, const std::string& folder,
                                     const std::string& working_folder) {
  return {remote_shell, "--serve", folder + "/" + kRshFolder, working_folder};
}

}  // namespace muster::launch
