#include "http/tls_context.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <array>

#include "http/openssl_handles.h"

namespace muster::http {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

/// As ALPN wants it: a length, then the name.
constexpr std::array<unsigned char, 9> kProtocols{8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

Error bad_identity(std::string what) {
  return {.code = ErrorCode::kInvalid,
          .what = std::move(what),
          .advice =
              "give the certificate, followed by those that it was signed with, and its key, "
              "both in PEM"};
}

/// OpenSSL would ask at the terminal for the key's pass phrase.
int no_pass_phrase(char*, int, int, void*) {
  return -1;
}

Result<TlsContext> new_context(const SSL_METHOD* method) {
  TlsContext context(SSL_CTX_new(method), SSL_CTX_free);
  if (context == nullptr || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1) {
    return Error{.code = ErrorCode::kInternal, .what = "cannot set up TLS: " + openssl_complaint()};
  }
  SSL_CTX_set_options(context.get(), SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  return context;
}

/// A client that names protocols, and not ours, would not understand a word of what follows.
int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* size,
                    const unsigned char* offered, unsigned int offered_size, void*) {
  unsigned char* found = nullptr;
  if (SSL_select_next_proto(&found, size, kProtocols.data(), kProtocols.size(), offered,
                            offered_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

/// `whose`: "server", "client"
Result<void> use_chain(SSL_CTX& context, const std::string& pem_text, const std::string& whose) {
  const BioHandle pem = bio_of(pem_text);
  const CertificateHandle leaf = read_certificate(pem.get());
  if (leaf == nullptr) return bad_identity("the " + whose + "'s certificate cannot be read");
  if (SSL_CTX_use_certificate(&context, leaf.get()) != 1) {
    return bad_identity("the " + whose + "'s certificate cannot be used: " + openssl_complaint());
  }
  while (const CertificateHandle next = read_certificate(pem.get())) {
    if (SSL_CTX_add1_chain_cert(&context, next.get()) != 1) {
      return bad_identity("the chain of the " + whose +
                          "'s certificate cannot be used: " + openssl_complaint());
    }
  }
  return {};
}

Result<void> use_key(SSL_CTX& context, const std::string& pem_text, const std::string& whose) {
  const BioHandle pem = bio_of(pem_text);
  const KeyHandle key(PEM_read_bio_PrivateKey(pem.get(), nullptr, no_pass_phrase, nullptr));
  if (key == nullptr) {
    ERR_clear_error();
    return bad_identity("the key of the " + whose +
                        "'s certificate cannot be read, or has a pass phrase");
  }
  if (SSL_CTX_use_PrivateKey(&context, key.get()) != 1 ||
      SSL_CTX_check_private_key(&context) != 1) {
    ERR_clear_error();
    return bad_identity("the key is not that of the " + whose + "'s certificate");
  }
  return {};
}

Result<void> trust(SSL_CTX& context, const std::string& authorities) {
  const BioHandle pem = bio_of(authorities);
  X509_STORE* store = SSL_CTX_get_cert_store(&context);
  int count = 0;
  while (const CertificateHandle next = read_certificate(pem.get())) {
    count += X509_STORE_add_cert(store, next.get());
  }
  if (count > 0) return {};
  return Error{.code = ErrorCode::kInvalid,
               .what = "the file of trusted authorities holds no certificate",
               .advice = "give certificates in PEM, which begin with -----BEGIN CERTIFICATE-----"};
}

}  // namespace

Result<TlsContext> server_context(const TlsIdentity& identity) {
  MUSTER_TRY(TlsContext context, new_context(TLS_server_method()));
  SSL_CTX_set_options(context.get(), SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, nullptr);
  MUSTER_CHECK(use_chain(*context, identity.certificate, "server"));
  MUSTER_CHECK(use_key(*context, identity.key, "server"));
  return context;
}

Result<TlsContext> client_context(const TlsEndpoint& endpoint) {
  MUSTER_TRY(TlsContext context, new_context(TLS_client_method()));
  SSL_CTX_set_alpn_protos(context.get(), kProtocols.data(), kProtocols.size());
  if (!endpoint.fingerprint.empty()) return context;
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  if (endpoint.authorities.empty()) {
    SSL_CTX_set_default_verify_paths(context.get());
  } else {
    MUSTER_CHECK(trust(*context, endpoint.authorities));
  }
  return context;
}

Result<TlsContext> client_context(const TlsEndpoint& endpoint, const TlsIdentity& identity) {
  MUSTER_TRY(TlsContext context, client_context(endpoint));
  MUSTER_CHECK(use_chain(*context, identity.certificate, "client"));
  MUSTER_CHECK(use_key(*context, identity.key, "client"));
  return context;
}

}  // namespace muster::http
