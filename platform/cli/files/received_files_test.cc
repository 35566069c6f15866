#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "base/files.h"
#include "base/test_folder.h"
#include "cli/files/files.h"
#include "workspace/manifest.h"

namespace muster::cli::files {

namespace {

const base::Time kThen{std::chrono::seconds{1'700'000'000}};

ExpectedFile expect(const std::string& path, const std::string& content) {
  return {.path = path,
          .bytes = static_cast<int64_t>(content.size()),
          .modified = kThen,
          .sha256 = workspace::chunk_id(content)};
}

class Received : public testing::Test {
 protected:
  ReceivedFiles open() { return *ReceivedFiles::open(folder_ / "to"); }

  size_t entries() const {
    return static_cast<size_t>(
        std::distance(std::filesystem::recursive_directory_iterator(folder_ / "to"), {}));
  }

  base::TestFolder folder_;
};

TEST_F(Received, FileAppearsWhenItIsComplete) {
  ReceivedFiles files = open();
  auto file = files.receive(expect("a/b/c", "hello"));
  ASSERT_TRUE(file) << file.error().to_string();
  ASSERT_TRUE(file->put("hel"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "to/a/b/c"));
  ASSERT_TRUE(file->put("lo"));
  ASSERT_TRUE(file->keep());

  EXPECT_EQ(*base::read_file(folder_ / "to/a/b/c"), "hello");
  struct stat status{};
  ASSERT_EQ(::stat((folder_ / "to/a/b/c").c_str(), &status), 0);
  EXPECT_EQ(status.st_mtim.tv_sec, 1'700'000'000);
  EXPECT_EQ(entries(), 3U);
}

TEST_F(Received, InterruptedFileIsContinued) {
  const ExpectedFile expected = expect("big", "0123456789");
  {
    ReceivedFiles files = open();
    auto file = files.receive(expected);
    ASSERT_TRUE(file->put("01234"));
  }

  ReceivedFiles files = open();
  auto file = files.receive(expected);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->bytes(), 5);
  ASSERT_TRUE(file->put("56789"));
  ASSERT_TRUE(file->keep());

  EXPECT_EQ(*base::read_file(folder_ / "to/big"), "0123456789");
}

TEST_F(Received, PartOfOtherContentIsNotContinued) {
  {
    ReceivedFiles files = open();
    auto file = files.receive(expect("big", "abcdefghij"));
    ASSERT_TRUE(file->put("abcde"));
  }

  ReceivedFiles files = open();
  EXPECT_EQ(files.receive(expect("big", "0123456789"))->bytes(), 0);
}

TEST_F(Received, DamagedFileIsReportedAndDiscarded) {
  ReceivedFiles files = open();
  auto file = files.receive(expect("a", "right"));
  ASSERT_TRUE(file->put("wrong"));

  const auto kept = file->keep();

  ASSERT_FALSE(kept);
  EXPECT_NE(kept.error().what.find("'a' was damaged in transfer"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "to/a"));
  EXPECT_EQ(files.receive(expect("a", "right"))->bytes(), 0);
}

TEST_F(Received, FileWithoutAChecksumIsAccepted) {
  ReceivedFiles files = open();
  ExpectedFile expected = expect("log", "so far");
  expected.sha256.clear();
  EXPECT_FALSE(files.has(expected));
  auto file = files.receive(expected);
  ASSERT_TRUE(file->put("so far and more"));
  ASSERT_TRUE(file->keep());

  EXPECT_EQ(*base::read_file(folder_ / "to/log"), "so far and more");
}

TEST_F(Received, ExistingFileIsRecognised) {
  ReceivedFiles files = open();
  std::ofstream(folder_ / "to/a") << "same";

  EXPECT_TRUE(files.has(expect("a", "same")));
  EXPECT_FALSE(files.has(expect("a", "othe")));
  EXPECT_FALSE(files.has(expect("b", "same")));
  EXPECT_FALSE(files.has(expect("../to/a", "same")));
}

TEST_F(Received, PathsOutOfTheFolderAreRefused) {
  ReceivedFiles files = open();
  for (const std::string path : {"../out", "/etc/out", "a/../../out", "", ".", "a//b", "a/.."}) {
    const auto file = files.receive(expect(path, "x"));
    ASSERT_FALSE(file) << path;
    EXPECT_EQ(file.error().code, base::ErrorCode::kInvalid) << path;
  }
  EXPECT_EQ(entries(), 0U);
}

TEST_F(Received, LinksInTheFolderAreNotFollowed) {
  ReceivedFiles files = open();
  std::filesystem::create_directory(folder_ / "outside");
  std::filesystem::create_directory_symlink(folder_ / "outside", folder_ / "to/out");
  std::ofstream(folder_ / "kept") << "mine";
  std::filesystem::create_symlink(folder_ / "kept", folder_ / "to/link");

  const auto below = files.receive(expect("out/x", "x"));
  ASSERT_FALSE(below);
  EXPECT_EQ(below.error().code, base::ErrorCode::kConflict);
  auto over = files.receive(expect("link", "new"));
  ASSERT_TRUE(over->put("new"));
  ASSERT_TRUE(over->keep());

  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "outside"));
  EXPECT_EQ(*base::read_file(folder_ / "kept"), "mine");
  EXPECT_EQ(*base::read_file(folder_ / "to/link"), "new");
}

TEST_F(Received, FolderWithTheSameNameIsKept) {
  ReceivedFiles files = open();
  std::filesystem::create_directories(folder_ / "to/a/inner");
  auto file = files.receive(expect("a", "x"));
  ASSERT_TRUE(file->put("x"));

  const auto kept = file->keep();

  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().code, base::ErrorCode::kConflict);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "to/a/inner"));
}

}  // namespace

}  // namespace muster::cli::files
