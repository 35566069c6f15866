#include "parameter_server/certificates.h"

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <memory>

namespace muster::parameter_server {
namespace {

constexpr const char* kKey = "00112233445566778899aabbccddeeff";
constexpr const char* kOtherKey = "00112233445566778899aabbccddeefe";

struct FreeX509 {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
using X509Ptr = std::unique_ptr<X509, FreeX509>;

X509Ptr read_certificate(const std::string& pem) {
  BIO* const bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  X509Ptr certificate(PEM_read_bio_X509(bio, nullptr, nullptr, nullptr));
  BIO_free(bio);
  return certificate;
}

// OpenSSL's verdict in TLS: X509_V_OK, or the reason of the rejection.
int verdict(const std::string& authority, const std::string& certificate, int purpose) {
  const X509Ptr anchor = read_certificate(authority);
  const X509Ptr leaf = read_certificate(certificate);
  X509_STORE* const store = X509_STORE_new();
  X509_STORE_add_cert(store, anchor.get());
  X509_STORE_CTX* const context = X509_STORE_CTX_new();
  X509_STORE_CTX_init(context, store, leaf.get(), nullptr);
  X509_STORE_CTX_set_purpose(context, purpose);
  X509_VERIFY_PARAM_set1_host(X509_STORE_CTX_get0_param(context),
                              purpose == X509_PURPOSE_SSL_SERVER ? kServerName.data() : nullptr, 0);
  X509_verify_cert(context);
  const int error = X509_STORE_CTX_get_error(context);
  X509_STORE_CTX_free(context);
  X509_STORE_free(store);
  return error;
}

TEST(Certificates, HoldersOfTheSameKeyTrustEachOther) {
  const auto server = certificates_from(kKey, End::kServer);
  const auto worker = certificates_from(kKey, End::kWorker);
  ASSERT_TRUE(server);
  ASSERT_TRUE(worker);
  EXPECT_EQ(verdict(worker->authority, server->certificate, X509_PURPOSE_SSL_SERVER), X509_V_OK);
  EXPECT_EQ(verdict(server->authority, worker->certificate, X509_PURPOSE_SSL_CLIENT), X509_V_OK);
}

TEST(Certificates, HoldersOfAnotherKeyAreStrangers) {
  const auto server = certificates_from(kKey, End::kServer);
  const auto stranger = certificates_from(kOtherKey, End::kWorker);
  ASSERT_TRUE(server);
  ASSERT_TRUE(stranger);
  EXPECT_NE(verdict(stranger->authority, server->certificate, X509_PURPOSE_SSL_SERVER), X509_V_OK);
  EXPECT_NE(verdict(server->authority, stranger->certificate, X509_PURPOSE_SSL_CLIENT), X509_V_OK);
}

TEST(Certificates, ACertificateIsNotValidForTheOtherEnd) {
  const auto server = certificates_from(kKey, End::kServer);
  const auto worker = certificates_from(kKey, End::kWorker);
  ASSERT_TRUE(server);
  ASSERT_TRUE(worker);
  EXPECT_EQ(verdict(worker->authority, server->certificate, X509_PURPOSE_SSL_CLIENT),
            X509_V_ERR_INVALID_PURPOSE);
  EXPECT_NE(verdict(server->authority, worker->certificate, X509_PURPOSE_SSL_SERVER), X509_V_OK);
}

TEST(Certificates, EveryProcessHasAKeyOfItsOwn) {
  const auto one = certificates_from(kKey, End::kWorker);
  const auto other = certificates_from(kKey, End::kWorker);
  ASSERT_TRUE(one);
  ASSERT_TRUE(other);
  EXPECT_NE(one->private_key, other->private_key);
  EXPECT_EQ(one->private_key.find("-----BEGIN PRIVATE KEY-----"), 0U);
}

TEST(Certificates, RejectAnInvalidKeyWithoutRepeatingIt) {
  for (const char* odd : {"", "secret", "0011"}) {
    const auto made = certificates_from(odd, End::kServer);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, collective::ErrorCode::kConfiguration);
    EXPECT_EQ(made.error().to_string().find("secret "), std::string::npos);
  }
}

}  // namespace
}  // namespace muster::parameter_server
