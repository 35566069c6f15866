// How both ends of a job know each other: by certificates that only a holder of the job's key can
// make. Each process derives the same signing key from the job's key (HKDF, RFC 5869, to a P-256
// scalar), makes for itself the certificate of that authority and one of its own, and trusts that
// authority alone. So nothing has to be handed out, and a stranger's certificate is worth nothing.
//
// None of it is written anywhere: PEM text is what gRPC takes, in memory.
#pragma once

#include <string>
#include <string_view>

#include "muster/collective/result.h"

namespace muster::parameter_server {

/// The name in every server's certificate. Servers are known by the job's key, wherever they
/// listen, so clients look for this name instead of the host's.
inline constexpr std::string_view kServerName = "parameter-server.muster";

enum class End {
  kServer,
  kWorker,
};

struct Certificates {
  std::string authority;    // to be trusted: PEM
  std::string certificate;  // one's own, signed by it: PEM
  std::string private_key;  // of `certificate`, made afresh: PEM
};

/// A certificate for one end; it does not pass for the other. They have no end of validity: they
/// are as good as the key, which is the job's, and hosts' clocks need not agree.
///
/// Errors: kConfiguration for a key that is none, without repeating it; kSystem from OpenSSL.
collective::Result<Certificates> certificates_from(std::string_view hex_key, End end);

}  // namespace muster::parameter_server
