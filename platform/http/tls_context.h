// What all TLS connections of one kind have in common: protocol versions, certificate, key, whom to
// trust. OpenSSL's own type is kept out of sight.
//
// Thread-safe: a context is not changed once it is made.
#pragma once

#include <memory>

#include "base/result.h"
#include "http/tls.h"

// OpenSSL's name of SSL_CTX.
struct ssl_ctx_st;

namespace muster::http {

using TlsContext = std::shared_ptr<ssl_ctx_st>;

/// kInvalid: the certificate or the key cannot be read, or they do not belong together.
base::Result<TlsContext> server_context(const TlsIdentity& identity);

/// Verifies the server's certificate by the authorities, unless the endpoint has a fingerprint:
/// then the caller compares. kInvalid: the authorities cannot be read.
base::Result<TlsContext> client_context(const TlsEndpoint& endpoint);
/// The same, with a certificate by which the server knows the client.
base::Result<TlsContext> client_context(const TlsEndpoint& endpoint, const TlsIdentity& identity);

}  // namespace muster::http
