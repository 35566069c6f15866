// The ssh side of /generated: what the client and the sshd of a task read.
//
// Pure. Host keys are pinned in known_hosts and StrictHostKeyChecking stays on.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

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

// An ed25519 key pair in the forms that OpenSSH reads.
//
// Pure: the pair follows from the seed. Format: PROTOCOL.key in the OpenSSH source; RFC 8032, 8709.

struct SshKey {
  std::string private_file;  ///< -----BEGIN OPENSSH PRIVATE KEY----- ..., without a passphrase
  std::string public_line;   ///< ssh-ed25519 AAAA..., without comment and newline
};

base::Result<SshKey> ssh_key_from_seed(const std::array<uint8_t, 32>& seed);

// The side of /generated that Muster's own remote shell reads (engine/rsh/): which hosts there are,
// and the key that both ends have.
//
// Pure.

/// Relative to the generated folder: its two files lie there.
inline constexpr const char* kRshFolder = "rsh";

/// A line each: NAME ADDRESS PORT.
std::string rsh_hosts(const std::vector<ShellHost>& hosts);

/// The far end, in inetd mode: `folder` is the generated one as the task sees it, commands run in
/// `working_folder`.
std::vector<std::string> rsh_service(const std::string& remote_shell, const std::string& folder,
                                     const std::string& working_folder);

}  // namespace muster::launch
