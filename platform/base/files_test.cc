#include "base/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "base/test_folder.h"

namespace muster::base {
namespace {

class Files : public testing::Test {
 protected:
  static mode_t mode_of(const std::filesystem::path& path) {
    struct stat status{};
    ::stat(path.c_str(), &status);
    return status.st_mode & 07777;
  }

  const TestFolder folder_;
};

TEST_F(Files, PrivateFoldersAreClosedToOthersWithAllTheParentsTheyNeed) {
  ASSERT_TRUE(make_private_folder(folder_ / "a" / "b"));

  EXPECT_EQ(mode_of(folder_ / "a"), 0700U);
  EXPECT_EQ(mode_of(folder_ / "a" / "b"), 0700U);
}

TEST_F(Files, AnOpenFolderIsClosedWhenItIsTakenIntoUse) {
  std::filesystem::create_directory(folder_ / "open");
  ::chmod((folder_ / "open").c_str(), 0755);

  ASSERT_TRUE(make_private_folder(folder_ / "open"));

  EXPECT_EQ(mode_of(folder_ / "open"), 0700U);
}

TEST_F(Files, AFileInThePlaceOfAFolderIsNamed) {
  std::ofstream(folder_ / "file") << "x";

  const auto made = make_private_folder(folder_ / "file");

  ASSERT_FALSE(made);
  EXPECT_NE(made.error().what.find("is not a folder"), std::string::npos);
}

TEST_F(Files, WritingReplacesAFileWholeWithModeAndReadsBack) {
  ASSERT_TRUE(write_file(folder_ / "key", "old, and longer than the new", 0644));
  ASSERT_TRUE(write_file(folder_ / "key", "new", 0600));

  EXPECT_EQ(*read_file(folder_ / "key"), "new");
  EXPECT_EQ(mode_of(folder_ / "key"), 0600U);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "key.new"));
}

TEST_F(Files, ANewFileReplacesNothing) {
  ASSERT_TRUE(write_new_file(folder_ / "once", "first"));

  EXPECT_EQ(write_new_file(folder_ / "once", "second").error().code, ErrorCode::kConflict);
  EXPECT_EQ(*read_file(folder_ / "once"), "first");
}

TEST_F(Files, ReadingStopsAtTheLimit) {
  ASSERT_TRUE(write_file(folder_ / "big", std::string(100, 'x')));

  EXPECT_EQ(read_file(folder_ / "big", 99).error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(read_file(folder_ / "big", 100));
}

TEST_F(Files, ALockIsHeldUntilItsDescriptorCloses) {
  {
    auto first = lock_file(folder_ / "lock");
    ASSERT_TRUE(first);
    EXPECT_EQ(lock_file(folder_ / "lock").error().code, ErrorCode::kConflict);
  }
  EXPECT_TRUE(lock_file(folder_ / "lock"));
}

}  // namespace
}  // namespace muster::base
