
#include "http/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>

#include "base/text.h"
#include "http/openssl_handles.h"

namespace muster::http {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr size_t kSha256HexDigits = 64;

bool is_address(const std::string& name) {
  std::array<unsigned char, sizeof(in6_addr)> ignored{};
  return ::inet_pton(AF_INET, name.c_str(), ignored.data()) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), ignored.data()) == 1;
}

/// A comma would separate entries in OpenSSL's configuration language.
bool is_host_name(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '-' || letter == '.' || letter == '*' ||
           letter == '_';
  });
}

Result<std::string> alternative_names(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) {
    const bool address = is_address(name);
    if (!address && !is_host_name(name)) {
      return Error{.code = ErrorCode::kInvalid,
                   .what = "'" + name + "' is neither a host name nor an address",
                   .advice = "name hosts as their clients do, e.g. muster.example.com"};
    }
    list += list.empty() ? "" : ",";
    list += (address ? "IP:" : "DNS:") + name;
  }
  if (!list.empty()) return list;
  return Error{.code = ErrorCode::kInvalid,
               .what = "a certificate needs a host name or an address",
               .advice = "name the server as its clients do, e.g. muster.example.com"};
}

bool add_extension(X509& certificate, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, &certificate, &certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  const bool added = extension != nullptr && X509_add_ext(&certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

/// 63 random bits and never zero, as browsers require of serial numbers.
bool set_serial(X509& certificate) {
  std::unique_ptr<BIGNUM, FreedBy<BN_free>> number(BN_new());
  return number != nullptr && BN_rand(number.get(), 63, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(&certificate)) != nullptr;
}

bool set_lifetime(X509& certificate, base::Time now, std::chrono::hours lifetime) {
  // Valid from an earlier time, for clients whose clock is a little behind ours.
  constexpr std::chrono::minutes kSlack{5};
  const std::time_t from = std::chrono::system_clock::to_time_t(
      std::chrono::time_point_cast<std::chrono::system_clock::duration>(now - kSlack));
  const std::time_t until = std::chrono::system_clock::to_time_t(
      std::chrono::time_point_cast<std::chrono::system_clock::duration>(now + lifetime));
  return ASN1_TIME_set(X509_getm_notBefore(&certificate), from) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(&certificate), until) != nullptr;
}

bool set_name(X509& certificate) {
  X509_NAME* name = X509_get_subject_name(&certificate);
  const auto* text = reinterpret_cast<const unsigned char*>("Muster");
  return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, text, -1, -1, 0) == 1 &&
         X509_set_issuer_name(&certificate, name) == 1;
}

bool fill_in(X509& certificate, EVP_PKEY& key, const std::string& names) {
  return X509_set_version(&certificate, X509_VERSION_3) == 1 && set_serial(certificate) &&
         set_name(certificate) && X509_set_pubkey(&certificate, &key) == 1 &&
         add_extension(certificate, NID_subject_alt_name, names) &&
         add_extension(certificate, NID_basic_constraints, "critical,CA:FALSE") &&
         add_extension(certificate, NID_key_usage, "critical,digitalSignature") &&
         add_extension(certificate, NID_ext_key_usage, "serverAuth") &&
         add_extension(certificate, NID_subject_key_identifier, "hash") &&
         add_extension(certificate, NID_authority_key_identifier, "keyid:always");
}

std::string text_in(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<size_t>(size)};
}

Error library_failed(const std::string& doing) {
  return {.code = ErrorCode::kInternal, .what = doing + ": " + openssl_complaint()};
}

}  // namespace

BioHandle bio_of(std::string_view text) {
  return BioHandle(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string openssl_complaint() {
  const unsigned long first = ERR_peek_error();
  ERR_clear_error();
  const char* reason = first == 0 ? nullptr : ERR_reason_error_string(first);
  return reason == nullptr ? "no reason given" : reason;
}

CertificateHandle read_certificate(BIO* pem) {
  CertificateHandle certificate(PEM_read_bio_X509(pem, nullptr, nullptr, nullptr));
  if (certificate == nullptr) ERR_clear_error();
  return certificate;
}

std::string fingerprint_of(const X509& certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  X509_digest(&certificate, EVP_sha256(), digest.data(), &size);
  constexpr std::string_view kLetters = "0123456789abcdef";
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    text += kLetters[digest[i] >> 4U];
    text += kLetters[digest[i] & 15U];
  }
  return text;
}

Result<TlsIdentity> make_self_signed(const std::vector<std::string>& names, base::Time now,
                                     std::chrono::hours lifetime) {
  MUSTER_TRY(const std::string list, alternative_names(names));
  const KeyHandle key(EVP_EC_gen("P-256"));
  const CertificateHandle certificate(X509_new());
  if (key == nullptr || certificate == nullptr || !fill_in(*certificate, *key, list) ||
      !set_lifetime(*certificate, now, lifetime) ||
      X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0) {
    return library_failed("cannot make a certificate");
  }
  const BioHandle certificate_text(BIO_new(BIO_s_mem()));
  const BioHandle key_text(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(certificate_text.get(), certificate.get()) != 1 ||
      PEM_write_bio_PKCS8PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                    nullptr) != 1) {
    return library_failed("cannot write a certificate");
  }
  return TlsIdentity{.certificate = text_in(certificate_text.get()),
                     .key = text_in(key_text.get())};
}

Result<void> check_identity(const TlsIdentity& identity) {
  MUSTER_TRY(const TlsContext ignored, server_context(identity));
  return {};
}

namespace {

Error not_a_certificate() {
  return {.code = ErrorCode::kInvalid,
          .what = "this is not a certificate",
          .advice = "give one in PEM, which begins with -----BEGIN CERTIFICATE-----"};
}

base::Time time_of(const ASN1_TIME* time) {
  // "No end" is 9999-12-31, which does not fit into a base::Time.
  constexpr std::time_t kLast = 9'000'000'000;
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return base::Time(std::chrono::seconds(kLast));
  return base::Time(std::chrono::seconds(std::clamp(::timegm(&parts), std::time_t{0}, kLast)));
}

}  // namespace

Result<CertificateTimes> times_of(const std::string& certificate_pem) {
  const BioHandle pem = bio_of(certificate_pem);
  const CertificateHandle certificate = read_certificate(pem.get());
  if (certificate == nullptr) return not_a_certificate();
  return CertificateTimes{.from = time_of(X509_get0_notBefore(certificate.get())),
                          .until = time_of(X509_get0_notAfter(certificate.get()))};
}

Result<std::string> fingerprint_of(const std::string& certificate_pem) {
  const BioHandle pem = bio_of(certificate_pem);
  const CertificateHandle certificate = read_certificate(pem.get());
  if (certificate != nullptr) return fingerprint_of(*certificate);
  return not_a_certificate();
}

std::string readable_fingerprint(const std::string& fingerprint) {
  std::string text;
  for (size_t i = 0; i < fingerprint.size(); ++i) {
    if (i > 0 && i % 2 == 0) text += ':';
    text += static_cast<char>(std::toupper(static_cast<unsigned char>(fingerprint[i])));
  }
  return text;
}

Result<std::string> parse_fingerprint(std::string_view text) {
  const std::string typed(text);
  std::string digits = base::lower_case(text);
  if (digits.starts_with("sha256:")) digits.erase(0, 7);
  std::erase_if(digits,
                [](unsigned char letter) { return letter == ':' || std::isspace(letter) != 0; });
  const bool all_hex = std::all_of(digits.begin(), digits.end(),
                                   [](unsigned char letter) { return std::isxdigit(letter) != 0; });
  if (all_hex && digits.size() == kSha256HexDigits) return digits;
  return Error{.code = ErrorCode::kInvalid,
               .what = "invalid fingerprint '" + typed +
                       "': a SHA-256 fingerprint has 64 hexadecimal digits",
               .advice = "use the fingerprint that the server prints when it starts"};
}

namespace {

/// ALPN's format: a length, then the name.
constexpr std::array<unsigned char, 9> kProtocols{8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

Error bad_identity(std::string what) {
  return {.code = ErrorCode::kInvalid,
          .what = std::move(what),
          .advice =
              "give the certificate, followed by those that it was signed with, and its key, "
              "both in PEM"};
}

/// Prevents OpenSSL from asking for the key's pass phrase at the terminal.
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

/// Rejects a client that offers protocols but not HTTP/1.1.
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
    return bad_identity("the key does not match the " + whose + "'s certificate");
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
               .what = "the file of trusted authorities contains no certificate",
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
  if (!endpoint.fingerprint.empty() || endpoint.is_unverified) return context;
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
