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

TEST_F(SecretKey, IsMadeOnceForItsOwnerAlone) {
  const auto made = find(own());
  ASSERT_TRUE(made);
  const auto again = find(own());
  ASSERT_TRUE(again);
  EXPECT_EQ(*made, *again);
  struct stat status{};
  ASSERT_EQ(::stat(own().own_file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(SecretKey, OfTheEnvironmentWinsOverANamedFileAndThatOverItsOwn) {
  ASSERT_TRUE(find(own()));
  ASSERT_TRUE(base::write_file(folder_ / "named", std::string(64, 'b') + "\n"));
  SecretKeyPlaces places = own();
  places.named_file = folder_ / "named";
  EXPECT_EQ(access::key_text(*find(places)), std::string(64, 'b'));
  places.variable = kKey;
  EXPECT_EQ(access::key_text(*find(places)), kKey);
}

TEST_F(SecretKey, ThatOthersCanReadIsRefused) {
  for (const mode_t mode : {0640, 0604, 0644, 0620}) {
    ASSERT_TRUE(base::write_file(own().own_file, kKey, mode));
    ASSERT_EQ(::chmod(own().own_file.c_str(), mode), 0);
    const auto found = find(own());
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ErrorCode::kRefused);
    EXPECT_NE(found.error().advice.find("chmod 600"), std::string::npos);
  }
}

TEST_F(SecretKey, ThatIsNoneIsNotRepeatedInTheError) {
  const std::string almost = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde";
  ASSERT_TRUE(base::write_file(own().own_file, almost));
  for (const SecretKeyPlaces& places : {own(), SecretKeyPlaces{.variable = almost}}) {
    const auto found = find(places);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(found.error().to_string().find("0123456789"), std::string::npos);
  }
}

TEST_F(SecretKey, AFileThatWasNamedHasToBeThere) {
  SecretKeyPlaces places = own();
  places.named_file = folder_ / "missing";
  const auto found = find(places);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().what.find("missing"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(places.own_file));
}

TEST_F(SecretKey, IsNotLeftInTheEnvironmentOfTheJobs) {
  ::setenv("MUSTER_SECRET_KEY", kKey.c_str(), 1);
  EXPECT_EQ(take_secret_key_variable(), kKey);
  EXPECT_EQ(std::getenv("MUSTER_SECRET_KEY"), nullptr);
}

}  // namespace
}  // namespace muster::service
