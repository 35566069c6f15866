// The ssh side of /generated: what the client and the sshd of a task read.
//
// Pure. Host keys are pinned in known_hosts and StrictHostKeyChecking stays on.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace muster::launch {

/// A name that ssh can reach and where it answers.
struct SshHost {
  std::string name;
  std::string address;
};

std::string client_config(const std::vector<SshHost>& hosts, int port, const std::string& user,
                          const std::string& folder);

std::string known_hosts(const std::vector<SshHost>& hosts, const std::string& host_public_line);

/// `folder`: the generated folder as the task sees it.
std::string sshd_config(const std::string& folder);

}  // namespace muster::launch
