#include "parameter_server/certificates.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/obj_mac.h>
#include <openssl/param_build.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "muster/collective/key.h"

namespace muster::parameter_server {
namespace {

using collective::Error;
using collective::ErrorCode;
using collective::Result;

template <typename T, void (*Free)(T*)>
struct Freed {
  void operator()(T* object) const { Free(object); }
};
template <typename T, void (*Free)(T*)>
using Owned = std::unique_ptr<T, Freed<T, Free>>;

using Number = Owned<BIGNUM, BN_clear_free>;
using Key = Owned<EVP_PKEY, EVP_PKEY_free>;
using Certificate = Owned<X509, X509_free>;
using Group = Owned<EC_GROUP, EC_GROUP_free>;
using Point = Owned<EC_POINT, EC_POINT_free>;
using ParamBuilder = Owned<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free>;
using Params = Owned<OSSL_PARAM, OSSL_PARAM_free>;
using KeyContext = Owned<EVP_PKEY_CTX, EVP_PKEY_CTX_free>;
using Kdf = Owned<EVP_KDF, EVP_KDF_free>;
using KdfContext = Owned<EVP_KDF_CTX, EVP_KDF_CTX_free>;
using Extension = Owned<X509_EXTENSION, X509_EXTENSION_free>;

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Bio = std::unique_ptr<BIO, FreeBio>;

// 128 bits more than the order of the curve, so that the remainder has no bias (FIPS 186-5, A.2.1).
constexpr std::size_t kSeedBytes = 48;
using Seed = std::array<unsigned char, kSeedBytes>;

// HKDF-SHA256. The label binds the derived key to this purpose.
bool derive(std::vector<std::byte>& job_key, Seed& seed) {
  std::string label = "muster parameter server certificate authority v1";
  std::string digest = "SHA256";
  const Kdf kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  const KdfContext context(kdf ? EVP_KDF_CTX_new(kdf.get()) : nullptr);
  const std::array<OSSL_PARAM, 4> params = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, job_key.data(), job_key.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, label.data(), label.size()),
      OSSL_PARAM_construct_end()};
  return context && EVP_KDF_derive(context.get(), seed.data(), seed.size(), params.data()) == 1;
}

// seed mod (n - 1) + 1: a scalar from 1 to n - 1.
Number scalar_from(const Seed& seed, const EC_GROUP* group, BN_CTX* context) {
  const Number wide(BN_bin2bn(seed.data(), static_cast<int>(seed.size()), nullptr));
  const Number range(BN_dup(EC_GROUP_get0_order(group)));
  Number scalar(BN_secure_new());
  if (!wide || !range || !scalar || BN_sub_word(range.get(), 1) != 1 ||
      BN_mod(scalar.get(), wide.get(), range.get(), context) != 1 ||
      BN_add_word(scalar.get(), 1) != 1) {
    return nullptr;
  }
  return scalar;
}

// The public point, which OpenSSL needs in addition to the scalar.
std::vector<unsigned char> point_of(const BIGNUM* scalar, const EC_GROUP* group, BN_CTX* context) {
  const Point point(EC_POINT_new(group));
  if (!point || EC_POINT_mul(group, point.get(), scalar, nullptr, nullptr, context) != 1) return {};
  const auto form = POINT_CONVERSION_UNCOMPRESSED;
  std::vector<unsigned char> bytes(
      EC_POINT_point2oct(group, point.get(), form, nullptr, 0, context));
  EC_POINT_point2oct(group, point.get(), form, bytes.data(), bytes.size(), context);
  return bytes;
}

Key key_of(const BIGNUM* scalar, const std::vector<unsigned char>& point) {
  const ParamBuilder builder(OSSL_PARAM_BLD_new());
  if (!builder ||
      OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) != 1 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_PRIV_KEY, scalar) != 1 ||
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                       point.size()) != 1) {
    return nullptr;
  }
  const Params params(OSSL_PARAM_BLD_to_param(builder.get()));
  const KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr));
  EVP_PKEY* key = nullptr;
  if (!params || !context || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_KEYPAIR, params.get()) != 1) {
    return nullptr;
  }
  return Key(key);
}

Key authority_key(std::vector<std::byte>& job_key) {
  Seed seed = {};
  const Group group(EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1));
  const Owned<BN_CTX, BN_CTX_free> context(BN_CTX_secure_new());
  if (!group || !context || !derive(job_key, seed)) return nullptr;
  const Number scalar = scalar_from(seed, group.get(), context.get());
  OPENSSL_cleanse(seed.data(), seed.size());
  if (!scalar) return nullptr;
  return key_of(scalar.get(), point_of(scalar.get(), group.get(), context.get()));
}

bool name(X509_NAME* entry, const char* text) {
  return X509_NAME_add_entry_by_txt(entry, "CN", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(text), -1, -1, 0) == 1;
}

bool extend(X509* certificate, X509* issuer, int what, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, what, value));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// RFC 5280, 4.1.2.5: the end date of a certificate without an end.
bool valid_always(X509* certificate) {
  return ASN1_TIME_set_string(X509_getm_notBefore(certificate), "19700101000000Z") == 1 &&
         ASN1_TIME_set_string(X509_getm_notAfter(certificate), "99991231235959Z") == 1;
}

constexpr const char* kAuthorityName = "Muster job";

// The common part of both kinds of certificates, unsigned.
Certificate begin_certificate(EVP_PKEY* key, const char* subject) {
  Certificate certificate(X509_new());
  const Number serial(BN_new());
  if (!certificate || !serial || X509_set_version(certificate.get(), X509_VERSION_3) != 1 ||
      BN_rand(serial.get(), 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) != 1 ||
      BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate.get())) == nullptr ||
      !valid_always(certificate.get()) ||
      !name(X509_get_subject_name(certificate.get()), subject) ||
      !name(X509_get_issuer_name(certificate.get()), kAuthorityName) ||
      X509_set_pubkey(certificate.get(), key) != 1) {
    return nullptr;
  }
  return certificate;
}

Certificate authority_of(EVP_PKEY* key) {
  Certificate certificate = begin_certificate(key, kAuthorityName);
  X509* const raw = certificate.get();
  if (!certificate || !extend(raw, raw, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !extend(raw, raw, NID_key_usage, "critical,keyCertSign") ||
      !extend(raw, raw, NID_subject_key_identifier, "hash") ||
      X509_sign(raw, key, EVP_sha256()) == 0) {
    return nullptr;
  }
  return certificate;
}

Certificate leaf_of(EVP_PKEY* key, X509* authority, EVP_PKEY* authority_key, End end) {
  const bool serves = end == End::kServer;
  const std::string subject(serves ? kServerName : "worker.muster");
  Certificate certificate = begin_certificate(key, subject.c_str());
  X509* const raw = certificate.get();
  if (!certificate || !extend(raw, authority, NID_basic_constraints, "critical,CA:FALSE") ||
      !extend(raw, authority, NID_key_usage, "critical,digitalSignature") ||
      !extend(raw, authority, NID_ext_key_usage, serves ? "serverAuth" : "clientAuth") ||
      !extend(raw, authority, NID_subject_alt_name, ("DNS:" + subject).c_str()) ||
      !extend(raw, authority, NID_authority_key_identifier, "keyid:always") ||
      X509_sign(raw, authority_key, EVP_sha256()) == 0) {
    return nullptr;
  }
  return certificate;
}

// Returns the output that `write` writes to a BIO.
template <typename Write>
std::string pem(const Write& write) {
  const Bio bio(BIO_new(BIO_s_secmem()));
  if (!bio || write(bio.get()) != 1) return {};
  char* text = nullptr;
  const auto length = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<std::size_t>(length)};
}

std::string pem_of(X509* certificate) {
  return pem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

std::string pem_of(EVP_PKEY* key) {
  return pem([&](BIO* bio) {
    return PEM_write_bio_PKCS8PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

std::optional<Certificates> make(std::vector<std::byte>& job_key, End end) {
  const Key signing = authority_key(job_key);
  const Key own(EVP_EC_gen("P-256"));
  if (!signing || !own) return std::nullopt;
  const Certificate authority = authority_of(signing.get());
  if (!authority) return std::nullopt;
  const Certificate leaf = leaf_of(own.get(), authority.get(), signing.get(), end);
  if (!leaf) return std::nullopt;
  return Certificates{.authority = pem_of(authority.get()),
                      .certificate = pem_of(leaf.get()),
                      .private_key = pem_of(own.get())};
}

}  // namespace

Result<Certificates> certificates_from(std::string_view hex_key, End end) {
  Result<std::vector<std::byte>> job_key = collective::parse_key(hex_key);
  if (!job_key) return job_key.error();
  std::optional<Certificates> made = make(*job_key, end);
  OPENSSL_cleanse(job_key->data(), job_key->size());
  if (!made || made->private_key.empty() || made->certificate.empty() || made->authority.empty()) {
    return Error{ErrorCode::kSystem, "OpenSSL cannot make a certificate from the job's key"};
  }
  return *std::move(made);
}

}  // namespace muster::parameter_server
