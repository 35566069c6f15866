// An ed25519 key pair in the forms that OpenSSH reads.
//
// Pure: the pair follows from the seed. Format: PROTOCOL.key in the OpenSSH source; RFC 8032, 8709.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace muster::launch {

struct SshKey {
  std::string private_file;  ///< -----BEGIN OPENSSH PRIVATE KEY----- ..., without a passphrase
  std::string public_line;   ///< ssh-ed25519 AAAA..., without comment and newline
};

base::Result<SshKey> ssh_key_from_seed(const std::array<uint8_t, 32>& seed);

}  // namespace muster::launch
