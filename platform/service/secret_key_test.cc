#include "service/secret_key.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "base/fake_random.h"
#include "base/files.h"
#include "base/test_folder.h"

namespace muster::service {
namespace {

using base::ErrorCode;

const std::string kKey(64, 'a');

class SecretKey : public testing::Test {
 protected:
  base::Result<access::SecretBox::Key> find(const SecretKeyPlaces& places) {
    return find_secret_key(places, random_);
  }
  SecretKeyPlaces own() const { return {.own_file = folder_ / "secret.key"}; }

  base::TestFolder folder_;
  base::FakeRandom random_;
};

TEST_F(SecretKey, IsCreatedOnceAndPrivateToItsOwner) {
  const auto made = find(own());
  ASSERT_TRUE(made);
  const auto again = find(own());
  ASSERT_TRUE(again);
  EXPECT_EQ(*made, *again);
  struct stat status{};
  ASSERT_EQ(::stat(own().own_file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(SecretKey, PrefersTheVariableToTheNamedFileAndThatToItsOwnFile) {
  ASSERT_TRUE(find(own()));
  ASSERT_TRUE(base::write_file(folder_ / "named", std::string(64, 'b') + "\n"));
  SecretKeyPlaces places = own();
  places.named_file = folder_ / "named";
  EXPECT_EQ(access::key_text(*find(places)), std::string(64, 'b'));
  places.variable = kKey;
  EXPECT_EQ(access::key_text(*find(places)), kKey);
}

TEST_F(SecretKey, IsRefusedIfOthersCanReadIt) {
  for (const mode_t mode : {0640, 0604, 0644, 0620}) {
    ASSERT_TRUE(base::write_file(own().own_file, kKey, mode));
    ASSERT_EQ(::chmod(own().own_file.c_str(), mode), 0);
    const auto found = find(own());
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ErrorCode::kRefused);
    EXPECT_NE(found.error().advice.find("chmod 600"), std::string::npos);
  }
}

TEST_F(SecretKey, IsNotPrintedIfItIsInvalid) {
  const std::string almost = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde";
  ASSERT_TRUE(base::write_file(own().own_file, almost));
  for (const SecretKeyPlaces& places : {own(), SecretKeyPlaces{.variable = almost}}) {
    const auto found = find(places);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(found.error().to_string().find("0123456789"), std::string::npos);
  }
}

TEST_F(SecretKey, ANamedFileMustExist) {
  SecretKeyPlaces places = own();
  places.named_file = folder_ / "missing";
  const auto found = find(places);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().what.find("missing"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(places.own_file));
}

TEST_F(SecretKey, IsRemovedFromTheEnvironmentOfJobs) {
  ::setenv("MUSTER_SECRET_KEY", kKey.c_str(), 1);
  EXPECT_EQ(take_secret_key_variable(), kKey);
  EXPECT_EQ(std::getenv("MUSTER_SECRET_KEY"), nullptr);
}

}  // namespace
namespace {

class TlsFilesTest : public testing::Test {
 protected:
  TlsFiles own() const {
    return {.own_certificate = folder_ / "tls/cert.pem",
            .own_key = folder_ / "tls/key.pem",
            .names = {"localhost"}};
  }

  base::TestFolder folder_;
  const base::Time now_ = base::SystemClock().now();
};

TEST_F(TlsFilesTest, ASelfSignedIdentityIsCreatedOnceAndItsKeyIsPrivate) {
  const auto made = find_tls_identity(own(), now_);
  ASSERT_TRUE(made) << made.error().to_string();
  const auto again = find_tls_identity(own(), now_);
  ASSERT_TRUE(again);
  EXPECT_EQ(made->certificate, again->certificate);
  EXPECT_EQ(made->key, again->key);
  struct stat status{};
  ASSERT_EQ(::stat(own().own_key.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(TlsFilesTest, AnInterruptedCreationIsRepeated) {
  ASSERT_TRUE(find_tls_identity(own(), now_));
  std::filesystem::remove(own().own_certificate);
  EXPECT_TRUE(find_tls_identity(own(), now_));
}

TEST_F(TlsFilesTest, GivenFilesAreUsedAndAGroupMayReadTheKey) {
  const auto made = find_tls_identity(own(), now_);
  ASSERT_TRUE(made);
  TlsFiles given = {.given_certificate = own().own_certificate,
                    .given_key = own().own_key,
                    .own_certificate = folder_ / "other/cert.pem",
                    .own_key = folder_ / "other/key.pem"};
  ASSERT_EQ(::chmod(own().own_key.c_str(), 0640), 0);
  EXPECT_EQ(find_tls_identity(given, now_)->certificate, made->certificate);
  EXPECT_FALSE(std::filesystem::exists(given.own_certificate));

  ASSERT_EQ(::chmod(own().own_key.c_str(), 0644), 0);
  EXPECT_EQ(find_tls_identity(given, now_).error().code, base::ErrorCode::kRefused);
}

TEST_F(TlsFilesTest, FilesThatDoNotMatchAreNamed) {
  ASSERT_TRUE(find_tls_identity(own(), now_));
  TlsFiles other = own();
  other.own_certificate = folder_ / "other/cert.pem";
  other.own_key = folder_ / "other/key.pem";
  ASSERT_TRUE(find_tls_identity(other, now_));
  const auto mixed = find_tls_identity(
      {.given_certificate = own().own_certificate, .given_key = other.own_key}, now_);
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().code, base::ErrorCode::kInvalid);
  EXPECT_NE(mixed.error().what.find("other/key.pem"), std::string::npos);
}

TEST(CertificateNames, AreTheNamesByWhichTheServerIsReached) {
  EXPECT_EQ(
      certificate_names("host", {"0.0.0.0:7443", "[2001:db8::1]:7443", ""},
                        {"muster", "localhost"}),
      (std::vector<std::string>{"localhost", "127.0.0.1", "::1", "host", "2001:db8::1", "muster"}));
}

}  // namespace
}  // namespace muster::service
