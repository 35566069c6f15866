// How both ends of a connection authenticate each other: by certificates that only a holder of the
// job's key can make. Each process derives the same signing key from the job's key (HKDF, RFC 5869,
// to a P-256 scalar). With it, the process makes the certificate of an authority and a certificate
// of its own, and trusts only that authority. Nothing has to be distributed, and certificates of
// strangers are rejected.
//
// The certificates exist in memory only, as PEM text for gRPC. Thread-safety: certificates_from() may
// be called from any thread.
#pragma once

#include <string>
#include <string_view>

#include "muster/collective/result.h"

namespace muster::parameter_server {

/// The name in every server's certificate. The job's key identifies servers, wherever they listen,
/// so clients check this name instead of the host's.
inline constexpr std::string_view kServerName = "parameter-server.muster";

enum class End {
  kServer,
  kWorker,
};

struct Certificates {
  std::string authority;    // to trust: PEM
  std::string certificate;  // of this process, signed by the authority: PEM
  std::string private_key;  // of `certificate`, newly generated: PEM
};

/// A certificate for one end, which is not valid for the other end. Certificates never expire: they
/// are valid as long as the key, which lives as long as the job, and the clocks of hosts need not
/// agree.
///
/// Errors: kConfiguration for an invalid key, without repeating it; kSystem from OpenSSL.
collective::Result<Certificates> certificates_from(std::string_view hex_key, End end);

}  // namespace muster::parameter_server
