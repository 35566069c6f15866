#include "engine/shim/task_account.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "base/test_folder.h"

namespace muster::engine {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kUser = 1'900'000'000;
constexpr uint32_t kOther = 1'900'000'001;

struct stat facts_of(const fs::path& path) {
  struct stat facts{};
  EXPECT_EQ(::lstat(path.c_str(), &facts), 0) << path;
  return facts;
}

class HandOver : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root may give files away";
    fs::create_directories(folder_ / "tree/a/b");
    for (const char* name : {"tree/file", "tree/a/b/file", "outside"}) {
      ASSERT_TRUE(base::write_file(folder_ / name, "x"));
    }
  }

  base::Result<void> give(const NewOwner& owner) {
    return hand_over((folder_ / "tree").string(), owner);
  }
  uint32_t uid_of(const std::string& name) { return facts_of(folder_ / name).st_uid; }

  base::TestFolder folder_;
};

TEST_F(HandOver, ChangesTheOwnerOfAFolderAndItsContent) {
  ASSERT_TRUE(give({.uid = kUser, .gid = kUser}));

  for (const char* name : {"tree", "tree/file", "tree/a", "tree/a/b", "tree/a/b/file"}) {
    EXPECT_EQ(uid_of(name), kUser) << name;
  }
  EXPECT_EQ(facts_of(folder_ / "tree/file").st_mode & 07777, 0600U);
}

TEST_F(HandOver, FollowsNoLink) {
  fs::create_symlink(folder_ / "outside", folder_ / "tree/link");
  fs::create_directory_symlink(folder_.path(), folder_ / "tree/folder");

  ASSERT_TRUE(give({.uid = kUser, .gid = kUser, .more_for_files = 0066}));

  EXPECT_EQ(uid_of("outside"), 0U);
  EXPECT_EQ(facts_of(folder_ / "outside").st_mode & 07777, 0600U);
  EXPECT_EQ(uid_of("tree/link"), kUser);
}

TEST_F(HandOver, RefusesALinkInThePlaceOfTheFolder) {
  fs::rename(folder_ / "tree", folder_ / "elsewhere");
  fs::create_directory_symlink(folder_ / "elsewhere", folder_ / "tree");

  EXPECT_FALSE(give({.uid = kUser, .gid = kUser}));
  EXPECT_EQ(uid_of("elsewhere"), 0U);
}

TEST_F(HandOver, DoesNotChangeFilesOfOtherOwners) {
  ASSERT_EQ(::chown((folder_ / "tree/file").c_str(), kOther, kOther), 0);
  ASSERT_EQ(::chown((folder_ / "tree/a").c_str(), kOther, kOther), 0);

  ASSERT_TRUE(give({.uid = kUser, .gid = kUser}));

  EXPECT_EQ(uid_of("tree/file"), kOther);
  EXPECT_EQ(uid_of("tree/a/b"), 0U);
}

TEST_F(HandOver, TakesAFolderFromTheAccountThatHadIt) {
  ASSERT_TRUE(give({.uid = kOther, .gid = kOther}));

  ASSERT_TRUE(give({.uid = kUser, .gid = kUser}));

  EXPECT_EQ(uid_of("tree/a/b/file"), kUser);
}

TEST_F(HandOver, OpensNoFileThatHasOtherNames) {
  ASSERT_EQ(::link((folder_ / "outside").c_str(), (folder_ / "tree/second").c_str()), 0);

  ASSERT_TRUE(give({.uid = std::nullopt, .gid = kUser, .more_for_files = 0066}));

  EXPECT_EQ(facts_of(folder_ / "outside").st_mode & 07777, 0600U);
  EXPECT_EQ(facts_of(folder_ / "tree/file").st_mode & 07777, 0666U);
}

TEST_F(HandOver, IsNotConfusedByFilesThatAreNoFiles) {
  ASSERT_EQ(::mkfifo((folder_ / "tree/fifo").c_str(), 0600), 0);

  ASSERT_TRUE(give({.uid = kUser, .gid = kUser, .more_for_files = 0066}));

  EXPECT_EQ(uid_of("tree/fifo"), kUser);
}

TEST_F(HandOver, OfAMissingFolderDoesNothing) {
  EXPECT_TRUE(hand_over((folder_ / "missing").string(), {.uid = kUser, .gid = kUser}));
}

TEST_F(HandOver, LetsAGroupWriteTheFilesOfItsUsers) {
  ASSERT_TRUE(hand_over(
      {.own = {}, .shared = {(folder_ / "tree").string()}, .shared_gid = kOther, .collected = {}},
      {.uid = kUser, .gid = kUser}));

  const struct stat facts = facts_of(folder_ / "tree");
  EXPECT_EQ(facts.st_gid, kOther);
  EXPECT_EQ(facts.st_mode & (S_ISGID | 0070U), S_ISGID | 0070U);
  ASSERT_TRUE(base::write_file(folder_ / "tree/new", "", 0660));
  EXPECT_EQ(facts_of(folder_ / "tree/new").st_gid, kOther);
}

}  // namespace
}  // namespace muster::engine
