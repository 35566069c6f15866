#include "dialects/gradient/api_key.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>

#include "base/files.h"

namespace muster::dialects::gradient {

namespace {

class ApiKey : public testing::Test {
 protected:
  void SetUp() override {
    std::array<char, 32> name{"/tmp/gradient-key-XXXXXX"};
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    home_ = name.data();
    file_ = *config_file({{"HOME", home_.string()}});
  }
  void TearDown() override { std::filesystem::remove_all(home_); }

  void write(const std::string& text) const {
    ASSERT_TRUE(base::make_private_folder(file_.parent_path()));
    ASSERT_TRUE(base::write_file(file_, text));
  }

  static mode_t mode_of(const std::filesystem::path& path) {
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_mode & 0777;
  }

  std::filesystem::path home_;
  std::filesystem::path file_;
};

TEST_F(ApiKey, IsStoredInGradientsFileReadableOnlyByItsUser) {
  ASSERT_TRUE(keep_api_key(file_, "abc"));

  EXPECT_EQ(file_, home_ / ".paperspace" / "config.json");
  EXPECT_EQ(*base::read_file(file_), "{\n  \"apiKey\": \"abc\"\n}\n");
  EXPECT_EQ(mode_of(file_), 0600U);
  EXPECT_EQ(mode_of(file_.parent_path()), 0700U);
  EXPECT_EQ(*kept_api_key(file_), "abc");
}

TEST_F(ApiKey, LeavesTheRestOfTheFileUnchanged) {
  write(R"({"teamId": 7, "apiKey": "old"})");

  ASSERT_TRUE(keep_api_key(file_, "new"));
  EXPECT_EQ(*base::read_file(file_), "{\n  \"teamId\": 7,\n  \"apiKey\": \"new\"\n}\n");

  ASSERT_TRUE(forget_api_key(file_));
  EXPECT_EQ(*base::read_file(file_), "{\n  \"teamId\": 7\n}\n");
  EXPECT_EQ(*kept_api_key(file_), "");
}

TEST_F(ApiKey, RemovesTheFileIfItContainsNothingElse) {
  ASSERT_TRUE(keep_api_key(file_, "abc"));
  ASSERT_TRUE(forget_api_key(file_));
  EXPECT_FALSE(std::filesystem::exists(file_));
  EXPECT_TRUE(forget_api_key(file_));
  EXPECT_EQ(*kept_api_key(file_), "");
}

TEST_F(ApiKey, ReportsAMalformedFile) {
  write("apiKey: abc\n");
  EXPECT_EQ(kept_api_key(file_).error().what, file_.string() + " is not a JSON object");
  EXPECT_FALSE(keep_api_key(file_, "new").ok());
  write(R"({"apiKey": 7})");
  EXPECT_EQ(kept_api_key(file_).error().what, file_.string() + ": apiKey is not a string");
}

TEST(ApiKeyFile, RequiresAHomeFolder) {
  EXPECT_EQ(config_file({}).error().advice, "set PAPERSPACE_API_KEY instead");
  EXPECT_FALSE(config_file({{"HOME", ""}}).ok());
}

}  // namespace

}  // namespace muster::dialects::gradient
