#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "base/test_folder.h"
#include "cli/connection/contexts.h"

namespace muster::cli {

namespace {

class ContextsFile : public testing::Test {
 protected:
  static Result<void> add(const std::filesystem::path& folder, const std::string& name) {
    return change_contexts(folder, [&](Contexts& contexts) -> Result<void> {
      contexts.known.push_back({.name = name, .server = "https://lab:7443", .token = "sesame"});
      contexts.in_use = name;
      return {};
    });
  }

  void write(const std::string& text, mode_t mode = 0600) const {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "contexts.json") << text;
    ::chmod((folder_ / "contexts.json").c_str(), mode);
  }

  std::string content() const {
    std::ostringstream text;
    text << std::ifstream(folder_ / "contexts.json").rdbuf();
    return text.str();
  }

  mode_t mode(const char* file) const {
    struct stat status{};
    return ::stat((folder_ / file).c_str(), &status) == 0 ? status.st_mode & 0777 : 0;
  }

  const base::TestFolder outer_;
  const std::filesystem::path folder_ = outer_ / "config";
};

TEST_F(ContextsFile, ThatIsNotThereHoldsNone) {
  EXPECT_EQ(*read_contexts(folder_), Contexts{});
  EXPECT_EQ(*read_contexts(""), Contexts{});
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

TEST_F(ContextsFile, IsItsUsersAlone) {
  ASSERT_TRUE(add(folder_, "lab"));

  EXPECT_EQ(mode("contexts.json"), 0600U);
  EXPECT_EQ(mode(""), 0700U);
  EXPECT_EQ(read_contexts(folder_)->in_use, "lab");
}

TEST_F(ContextsFile, ThatOthersMayReadIsRefusedAndSaysHowToMendIt) {
  ASSERT_TRUE(add(folder_, "lab"));
  for (const mode_t open : {0640U, 0604U, 0660U, 0644U}) {
    ::chmod((folder_ / "contexts.json").c_str(), open);

    const auto read = read_contexts(folder_);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, base::ErrorCode::kRefused);
    EXPECT_NE(read.error().advice.find("chmod 600 "), std::string::npos) << read.error().advice;
    EXPECT_FALSE(add(folder_, "other"));
  }
  ::chmod((folder_ / "contexts.json").c_str(), 0600);
  EXPECT_EQ(read_contexts(folder_)->names(), (std::vector<std::string>{"local", "lab"}));
}

TEST_F(ContextsFile, ThatIsDamagedIsToldAndLeftAsItIs) {
  write("{\"token\": \"sesame\", ");

  const auto read = read_contexts(folder_);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, base::ErrorCode::kInvalid);
  EXPECT_NE(read.error().what.find("contexts.json' is damaged: "), std::string::npos);
  EXPECT_EQ(read.error().to_string().find("sesame"), std::string::npos);
  EXPECT_FALSE(add(folder_, "lab"));
  EXPECT_EQ(content(), "{\"token\": \"sesame\", ");
}

TEST_F(ContextsFile, IsLeftAsItIsWhereTheChangeFails) {
  ASSERT_TRUE(add(folder_, "lab"));
  const std::string before = content();

  const auto changed = change_contexts(folder_, [](Contexts& contexts) -> Result<void> {
    contexts.known.clear();
    return base::Error{.what = "no"};
  });

  EXPECT_FALSE(changed);
  EXPECT_EQ(content(), before);
}

TEST_F(ContextsFile, LosesNoChangeOfManyAtTheSameTime) {
  constexpr int kWriters = 8;
  constexpr int kEach = 10;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([this, writer] {
      for (int i = 0; i < kEach; ++i) {
        const std::string name = "c" + std::to_string(writer) + "-" + std::to_string(i);
        EXPECT_TRUE(add(folder_, name));
        EXPECT_TRUE(read_contexts(folder_));  // never half of it
      }
    });
  }
  for (std::thread& writer : writers) writer.join();

  const auto contexts = read_contexts(folder_);
  ASSERT_TRUE(contexts);
  EXPECT_EQ(contexts->known.size(), static_cast<size_t>(kWriters * kEach));
  EXPECT_NE(contexts->find(contexts->in_use), nullptr);
}

TEST_F(ContextsFile, ForgetsAContextAndGoesBackToTheLocalOne) {
  ASSERT_TRUE(add(folder_, "lab"));

  EXPECT_EQ(forget_context(folder_, "lap").error().code, base::ErrorCode::kNotFound);
  EXPECT_EQ(forget_context(folder_, "local").error().code, base::ErrorCode::kInvalid);
  ASSERT_TRUE(forget_context(folder_, "lab"));

  EXPECT_EQ(*read_contexts(folder_), Contexts{});
  EXPECT_EQ(content().find("sesame"), std::string::npos);
}

}  // namespace

}  // namespace muster::cli
