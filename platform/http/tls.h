// TLS: identities, certificates and contexts. TLS 1.2 and newer. OpenSSL is included by http/'s .cc
// files only.
//
// Thread-safe (no state; a context does not change once it is made).
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

// OpenSSL's name of SSL_CTX.
struct ssl_ctx_st;

namespace muster::http {

/// A server's certificate chain and private key, as PEM.
struct TlsIdentity {
  std::string certificate;
  std::string key;
};

/// The address of a server and how a client verifies it: by `fingerprint` if given, else by the
/// certificate authorities in `authorities` (PEM), else by those of the system. With authorities,
/// the certificate must also contain the host name.
struct TlsEndpoint {
  std::string host;
  int port = 7443;
  std::string fingerprint;  ///< SHA-256 of the server's certificate: 64 hexadecimal digits
  std::string authorities;
  /// Any certificate is accepted: for a person who has asked for that.
  bool is_unverified = false;
};

// --- certificates

/// A self-signed certificate (ECDSA P-256) for these host names and addresses.
base::Result<TlsIdentity> make_self_signed(const std::vector<std::string>& names, base::Time now,
                                           std::chrono::hours lifetime);
/// kInvalid: the PEM cannot be parsed, or the key does not match the certificate.
base::Result<void> check_identity(const TlsIdentity& identity);

struct CertificateTimes {
  base::Time from;
  base::Time until;
};
/// When the first certificate is valid. kInvalid: it is not a certificate.
base::Result<CertificateTimes> times_of(const std::string& certificate_pem);

/// SHA-256 of the first certificate: 64 lower-case hexadecimal digits.
base::Result<std::string> fingerprint_of(const std::string& certificate_pem);
/// Upper-case pairs of digits, separated by colons, as other programs print fingerprints.
std::string readable_fingerprint(const std::string& fingerprint);
/// 64 digits from a typed fingerprint: with or without colons, capitals and a leading "sha256:".
base::Result<std::string> parse_fingerprint(std::string_view text);

// --- contexts: protocol versions, certificate, key and trusted authorities, shared by connections

using TlsContext = std::shared_ptr<ssl_ctx_st>;

/// kInvalid: the certificate or the key cannot be read, or they do not match.
base::Result<TlsContext> server_context(const TlsIdentity& identity);

/// Verifies the server's certificate by the authorities. If the endpoint has a fingerprint, nothing
/// is verified here: the caller compares the fingerprint. kInvalid: the authorities cannot be read.
base::Result<TlsContext> client_context(const TlsEndpoint& endpoint);
/// The same with a client certificate, by which the server identifies the client.
base::Result<TlsContext> client_context(const TlsEndpoint& endpoint, const TlsIdentity& identity);

}  // namespace muster::http
