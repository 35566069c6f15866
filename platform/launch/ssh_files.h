// The files of a task's ssh client and sshd in /generated.
//
// Pure. Host keys are pinned in known_hosts, and StrictHostKeyChecking stays on.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster::launch {

/// A name that a remote shell can reach, and its address.
struct ShellHost {
  std::string name;
  std::string address;
  int port = 0;
  std::string user;  ///< the account of commands there, by its name there
};

/// `folder`: the generated folder as the task sees it. `on_one_machine`: no connection leaves the
/// machine, so the client chooses a key exchange that takes less time.
std::string client_config(const std::vector<ShellHost>& hosts, const std::string& folder,
                          bool on_one_machine);

std::string known_hosts(const std::vector<ShellHost>& hosts, const std::string& host_public_line);

/// `folder`: the generated folder as the task sees it.
std::string sshd_config(const std::string& folder);

// An ed25519 key pair in OpenSSH's formats.
//
// Pure: the pair depends only on the seed. Format: PROTOCOL.key in the OpenSSH source; RFC 8032,
// 8709.

struct SshKey {
  std::string private_file;  ///< -----BEGIN OPENSSH PRIVATE KEY----- ..., without a passphrase
  std::string public_line;   ///< ssh-ed25519 AAAA..., without comment and newline
};

base::Result<SshKey> ssh_key_from_seed(const std::array<uint8_t, 32>& seed);

// The files of Muster's own remote shell (engine/rsh/) in /generated: the hosts, and the key that
// both ends share.
//
// Pure.

/// The folder of its two files, relative to the generated folder.
inline constexpr const char* kRshFolder = "rsh";

/// One line for each host: NAME ADDRESS PORT.
std::string rsh_hosts(const std::vector<ShellHost>& hosts);

/// The server, in inetd mode: `folder` is the generated folder as the task sees it; commands run in
/// `working_folder`.
std::vector<std::string> rsh_service(const std::string& remote_shell, const std::string& folder,
                                     const std::string& working_folder);

}  // namespace muster::launch
