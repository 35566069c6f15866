// What both ends of a TLS connection have to know, and how certificates are made and compared.
// TLS 1.2 and newer. OpenSSL stays inside http/'s .cc files.
//
// Thread-safe (no state).
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace muster::http {

/// A server's certificate chain and its key, as PEM.
struct TlsIdentity {
  std::string certificate;
  std::string key;
};

/// Where a client goes, and how it knows the server: by `fingerprint` where one is given, else by
/// the authorities in `authorities` (PEM), else by those of the system; then the host's name must
/// be in the certificate, too.
struct TlsEndpoint {
  std::string host;
  int port = 7443;
  std::string fingerprint;  ///< SHA-256 of the server's certificate: 64 hexadecimal digits
  std::string authorities;
};

/// A self-signed certificate (ECDSA P-256) for these host names and addresses.
base::Result<TlsIdentity> make_self_signed(const std::vector<std::string>& names, base::Time now,
                                           std::chrono::hours lifetime);
/// kInvalid: the PEM cannot be read, or the key is not that of the certificate.
base::Result<void> check_identity(const TlsIdentity& identity);

/// SHA-256 of the first certificate, 64 lower-case hexadecimal digits.
base::Result<std::string> fingerprint_of(const std::string& certificate_pem);
/// The same of whoever answers at `host`:`port`, for a person to compare before it is trusted.
base::Result<std::string> fingerprint_at(const std::string& host, int port);
/// Digits in pairs with colons between, in capitals, as others print it.
std::string readable_fingerprint(const std::string& fingerprint);
/// 64 digits from whatever a person typed: with colons, in capitals, with "sha256:" in front.
base::Result<std::string> parse_fingerprint(std::string_view text);

}  // namespace muster::http
