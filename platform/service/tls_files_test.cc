#include "service/tls_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/test_folder.h"

namespace muster::service {
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

TEST_F(TlsFilesTest, ASelfSignedIdentityIsMadeOnceAndItsKeyKeptForItsOwner) {
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

TEST_F(TlsFilesTest, AServerThatDiedWhileItMadeThemMakesThemAnew) {
  ASSERT_TRUE(find_tls_identity(own(), now_));
  std::filesystem::remove(own().own_certificate);
  EXPECT_TRUE(find_tls_identity(own(), now_));
}

TEST_F(TlsFilesTest, GivenOnesAreTakenAndAGroupMayReadTheirKey) {
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

TEST_F(TlsFilesTest, OnesThatDoNotBelongTogetherAreNamed) {
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

TEST(CertificateNames, AreThoseByWhichTheServerIsReached) {
  EXPECT_EQ(
      certificate_names("host", {"0.0.0.0:7443", "[2001:db8::1]:7443", ""},
                        {"muster", "localhost"}),
      (std::vector<std::string>{"localhost", "127.0.0.1", "::1", "host", "2001:db8::1", "muster"}));
}

}  // namespace
}  // namespace muster::service
