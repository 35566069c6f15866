#include "engine/rsh/secure_channel.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <array>
#include <memory>

#include "base/fake_random.h"
#include "launch/ssh_files.h"

namespace muster::engine::rsh {
namespace {

Key key_of(uint8_t byte) {
  Key key{};
  key.fill(byte);
  return key;
}

/// Passes the bytes of each end to the other until both are silent; returns the errors.
std::vector<base::Error> talk(SecureChannel& near, SecureChannel& far) {
  std::vector<base::Error> errors;
  const auto hand_over = [&](SecureChannel& from, SecureChannel& to) {
    const std::string bytes = from.take_encrypted();
    if (bytes.empty()) return false;
    const auto received = to.receive(bytes);
    if (!received) errors.push_back(received.error());
    return true;
  };
  while (hand_over(near, far) || hand_over(far, near)) {
  }
  return errors;
}

TEST(SecureChannel, CarriesDataBothWaysWithTheSameKey) {
  SecureChannel near(End::kNear, key_of(7));
  SecureChannel far(End::kFar, key_of(7));
  EXPECT_TRUE(talk(near, far).empty());
  ASSERT_TRUE(near.established() && far.established());

  near.send("there");
  far.send(std::string(100'000, 'b'));
  EXPECT_TRUE(talk(near, far).empty());

  EXPECT_EQ(far.take_plain(), "there");
  EXPECT_EQ(near.take_plain(), std::string(100'000, 'b'));
}

TEST(SecureChannel, EncryptsTheData) {
  SecureChannel near(End::kNear, key_of(7));
  SecureChannel far(End::kFar, key_of(7));
  talk(near, far);

  near.send("a secret of the job");

  EXPECT_EQ(near.take_encrypted().find("secret"), std::string::npos);
}

TEST(SecureChannel, RejectsAnotherKey) {
  SecureChannel near(End::kNear, key_of(7));
  SecureChannel far(End::kFar, key_of(8));

  const auto errors = talk(near, far);

  ASSERT_FALSE(errors.empty());
  EXPECT_EQ(errors.front().code, base::ErrorCode::kRefused);
  EXPECT_EQ(errors.front().what, "has another key");
  EXPECT_FALSE(near.established());
  EXPECT_FALSE(far.established());
}

/// A TLS server without the key of the job, which offers a self-signed certificate instead.
class Impostor {
 public:
  Impostor() {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"),
                                                                  EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), X509_free);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
    X509_set_pubkey(certificate.get(), key.get());
    X509_sign(certificate.get(), key.get(), EVP_sha256());
    SSL_CTX_use_certificate(context_.get(), certificate.get());
    SSL_CTX_use_PrivateKey(context_.get(), key.get());
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_bio(ssl_.get(), incoming_, outgoing_);
    SSL_set_accept_state(ssl_.get());
  }

  /// The decrypted bytes that it has received.
  std::string decrypt(const std::string& bytes) {
    BIO_write(incoming_, bytes.data(), static_cast<int>(bytes.size()));
    std::array<char, 100> piece{};
    const int count = SSL_read(ssl_.get(), piece.data(), static_cast<int>(piece.size()));
    return count > 0 ? std::string(piece.data(), static_cast<size_t>(count)) : "";
  }

  std::string take_encrypted() {
    std::string bytes(BIO_ctrl_pending(outgoing_), '\0');
    if (!bytes.empty()) BIO_read(outgoing_, bytes.data(), static_cast<int>(bytes.size()));
    return bytes;
  }

 private:
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{SSL_CTX_new(TLS_server_method()),
                                                             SSL_CTX_free};
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_{nullptr, SSL_free};
  BIO* incoming_ = BIO_new(BIO_s_mem());
  BIO* outgoing_ = BIO_new(BIO_s_mem());
};

TEST(SecureChannel, RejectsACertificateInPlaceOfTheKey) {
  SecureChannel near(End::kNear, key_of(7));
  Impostor far;
  EXPECT_EQ(far.decrypt(near.take_encrypted()), "");

  const auto received = near.receive(far.take_encrypted());

  EXPECT_FALSE(near.established());
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().code, base::ErrorCode::kRefused);
  EXPECT_EQ(received.error().what, "has another key");
}

TEST(SecureChannel, RejectsBytesThatAreNoHandshake) {
  for (const char* bytes :
       {"SSH-2.0-muster\r\n", "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\xff\xff"}) {
    SecureChannel far(End::kFar, key_of(7));
    const auto received = far.receive(bytes);
    EXPECT_FALSE(far.established());
    EXPECT_TRUE(far.take_plain().empty());
    if (received) continue;  // it may be the beginning of a handshake
    EXPECT_EQ(received.error().code, base::ErrorCode::kRefused);
  }
}

TEST(SecureChannel, DetectsChangedBytes) {
  SecureChannel near(End::kNear, key_of(7));
  SecureChannel far(End::kFar, key_of(7));
  talk(near, far);
  near.send("pay 1");
  std::string bytes = near.take_encrypted();
  bytes[bytes.size() - 2] = static_cast<char>(bytes[bytes.size() - 2] ^ 1);

  const auto received = far.receive(bytes);

  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().code, base::ErrorCode::kInvalid);
  EXPECT_TRUE(far.take_plain().empty());
}

TEST(SecureChannel, RejectsRepeatedBytes) {
  SecureChannel near(End::kNear, key_of(7));
  SecureChannel far(End::kFar, key_of(7));
  talk(near, far);
  near.send("run it once");
  const std::string bytes = near.take_encrypted();
  ASSERT_TRUE(far.receive(bytes));
  far.take_plain();

  EXPECT_FALSE(far.receive(bytes));
  EXPECT_TRUE(far.take_plain().empty());
}

TEST(ReadKey, ReadsOnlyTheFormThatLaunchWrites) {
  base::FakeRandom random;
  const auto bytes = random.bytes<32>();
  const auto key = read_key(base::to_hex(bytes) + "\n");
  ASSERT_TRUE(key);
  EXPECT_EQ(*key, bytes);

  for (const std::string& text : {std::string(), std::string(63, 'a'), std::string(64, 'g'),
                                  std::string(66, 'a'), std::string(64, 'A')}) {
    const auto read = read_key(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().what, "the key of the job is damaged");
  }
}

}  // namespace
}  // namespace muster::engine::rsh
