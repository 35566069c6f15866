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

/// A given certificate whose files a program replaces.
class CertificateWatchTest : public TlsFilesTest {
 protected:
  CertificateWatchTest() {
    write("one", now_, std::chrono::days(90));
    EXPECT_TRUE(renew());
    looks_ = 0;
  }

  /// Replaces both files, which get a later modification time.
  void write(const std::string& name, base::Time from, std::chrono::hours lifetime) {
    const auto made = http::make_self_signed({name}, from, lifetime);
    ASSERT_TRUE(made);
    ASSERT_TRUE(base::write_file(*files_.given_certificate, made->certificate));
    ASSERT_TRUE(base::write_file(*files_.given_key, made->key, 0600));
    written_ += std::chrono::seconds(1);
    for (const auto& file : {*files_.given_certificate, *files_.given_key}) {
      std::filesystem::last_write_time(file, written_);
    }
  }

  base::Result<void> renew() {
    ++looks_;
    const auto stamps = CertificateWatch::stamps_of(files_);
    MUSTER_TRY(const http::TlsIdentity own, find_tls_identity(files_, now_));
    MUSTER_TRY(const http::CertificateTimes times, http::times_of(own.certificate));
    watch_.serves(stamps, times);
    served_ = own.certificate;
    return {};
  }

  /// What is logged at a look.
  std::string look(base::Time now) {
    testing::internal::CaptureStderr();
    watch_.look(files_, now, [this] { return renew(); });
    return testing::internal::GetCapturedStderr();
  }

  TlsFiles files_{.given_certificate = folder_ / "cert.pem", .given_key = folder_ / "key.pem"};
  std::filesystem::file_time_type written_ = std::filesystem::file_time_type::clock::now();
  CertificateWatch watch_;
  std::string served_;
  int looks_ = 0;
};

TEST_F(CertificateWatchTest, ReadsReplacedFilesOnce) {
  EXPECT_EQ(look(now_), "");
  EXPECT_EQ(looks_, 0);
  write("two", now_, std::chrono::days(90));

  EXPECT_EQ(look(now_), "");
  EXPECT_EQ(look(now_), "");

  EXPECT_EQ(looks_, 1);
  EXPECT_EQ(served_, *base::read_file(*files_.given_certificate));
}

TEST_F(CertificateWatchTest, KeepsTheCertificateUntilTheNewFilesMatch) {
  const std::string before = served_;
  const std::string key = *base::read_file(*files_.given_key);
  write("two", now_, std::chrono::days(90));
  const std::string new_key = *base::read_file(*files_.given_key);
  ASSERT_TRUE(base::write_file(*files_.given_key, key, 0600));

  EXPECT_NE(look(now_).find("keeps the earlier certificate"), std::string::npos);
  EXPECT_EQ(look(now_), "");  // the same error is not logged again
  EXPECT_EQ(served_, before);

  ASSERT_TRUE(base::write_file(*files_.given_key, new_key, 0600));
  EXPECT_EQ(look(now_), "");
  EXPECT_NE(served_, before);
}

TEST_F(CertificateWatchTest, LogsTheSameErrorAgainAfterTheFilesWereUsable) {
  const std::string key = *base::read_file(*files_.given_key);
  const auto stamp = std::filesystem::last_write_time(*files_.given_key);
  // Both times with the same error.
  const auto make_unusable = [&] {
    ASSERT_TRUE(base::write_file(*files_.given_key, "no key", 0600));
    std::filesystem::last_write_time(*files_.given_key, stamp + std::chrono::seconds(1));
  };
  make_unusable();
  EXPECT_NE(look(now_), "");
  EXPECT_EQ(look(now_), "");

  ASSERT_TRUE(base::write_file(*files_.given_key, key, 0600));
  std::filesystem::last_write_time(*files_.given_key, stamp);
  EXPECT_EQ(look(now_), "");
  make_unusable();

  EXPECT_NE(look(now_), "");
}

TEST_F(CertificateWatchTest, WarnsOnceADayInTheLastTwoWeeks) {
  using std::chrono::days;
  using std::chrono::hours;
  EXPECT_EQ(look(now_ + days(75)), "");
  EXPECT_NE(look(now_ + days(77)).find("the certificate of this server expires at"),
            std::string::npos);
  EXPECT_EQ(look(now_ + days(77) + hours(23)), "");
  EXPECT_NE(look(now_ + days(78)).find("expires at"), std::string::npos);
  EXPECT_NE(look(now_ + days(91)).find("expired at"), std::string::npos);

  write("two", now_ + days(91), days(90));
  EXPECT_EQ(look(now_ + days(91)), "");
  EXPECT_EQ(looks_, 1);
}

TEST_F(CertificateWatchTest, WarnsInTheLastQuarterOfAShortLifetime) {
  using std::chrono::hours;
  write("two", now_, hours(24));
  EXPECT_EQ(look(now_ + hours(17)), "");
  EXPECT_NE(look(now_ + hours(19)).find("expires at"), std::string::npos);
}

TEST(CertificateNames, AreTheNamesByWhichTheServerIsReached) {
  EXPECT_EQ(
      certificate_names("host", {"0.0.0.0:7443", "[2001:db8::1]:7443", ""},
                        {"muster", "localhost"}),
      (std::vector<std::string>{"localhost", "127.0.0.1", "::1", "host", "2001:db8::1", "muster"}));
}

}  // namespace
}  // namespace muster::service
