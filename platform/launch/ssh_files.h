// The ssh side of /generated: what the client and the sshd of a task read.
//
// Pure. Host keys are pinned in known_hosts and StrictHostKeyChecking stays on.
#pragma once

#include <string>
#include <vector>

namespace muster::launch {

/// A name that a remote shell can reach and where it answers.
struct ShellHost {
  std::string name;
  std::string address;
  int port = 0;
  std::string user;  ///< who commands run as there, by the name it has there
};

std::string client_config(const std::vector<ShellHost>& hosts, const std::string& folder);

std::string known_hosts(const std::vector<ShellHost>& hosts, const std::string& host_public_line);

/// `folder`: the generated folder as the task sees it.
std::string sshd_config(const std::string& folder);

}  // namespace muster::launch
