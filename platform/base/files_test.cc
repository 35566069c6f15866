#include "base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "base/test_failing_calls.h"
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

TEST_F(Files, AFolderAboveAPrivateFolderKeepsItsMode) {
  std::filesystem::create_directory(folder_ / "shared");
  std::filesystem::permissions(folder_ / "shared", std::filesystem::perms(01777));
  ASSERT_TRUE(make_private_folder(folder_ / "shared" / "a" / "b"));
  EXPECT_EQ(std::filesystem::status(folder_ / "shared").permissions(),
            std::filesystem::perms(01777));
}

TEST_F(Files, AFolderThatCannotBeInItsParentIsAnError) {
  const auto made = make_private_folder("/proc/no-such-process/state");
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().what.find("cannot create folder '/proc/no-such-process/state'"),
            std::string::npos)
      << made.error().what;
}

TEST_F(Files, PrivateFoldersAreCreatedWithPrivateParents) {
  ASSERT_TRUE(make_private_folder(folder_ / "a" / "b"));

  EXPECT_EQ(mode_of(folder_ / "a"), 0700U);
  EXPECT_EQ(mode_of(folder_ / "a" / "b"), 0700U);
}

TEST_F(Files, AnOpenFolderIsMadePrivateWhenItIsUsed) {
  std::filesystem::create_directory(folder_ / "open");
  ::chmod((folder_ / "open").c_str(), 0755);

  ASSERT_TRUE(make_private_folder(folder_ / "open"));

  EXPECT_EQ(mode_of(folder_ / "open"), 0700U);
}

TEST_F(Files, AFileInThePlaceOfAFolderIsReported) {
  std::ofstream(folder_ / "file") << "x";

  const auto made = make_private_folder(folder_ / "file");

  ASSERT_FALSE(made);
  EXPECT_NE(made.error().what.find("is not a folder"), std::string::npos);
}

TEST_F(Files, WritingReplacesAFileAndSetsItsMode) {
  ASSERT_TRUE(write_file(folder_ / "key", "old, and longer than the new", 0644));
  ASSERT_TRUE(write_file(folder_ / "key", "new", 0600));

  EXPECT_EQ(*read_file(folder_ / "key"), "new");
  EXPECT_EQ(mode_of(folder_ / "key"), 0600U);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "key.new"));
}

/// Exit code of a process in which close() reports what NFS could not write: 0 if write_file()
/// fails with that error.
int write_where_closing_fails(const std::filesystem::path& path) {
  if (!fail_system_call(SYS_close, EDQUOT)) return 2;
  const auto written = write_file(path, "new");
  if (written) return 3;
  return written.error().what == "cannot write '" + path.string() + ".new': Disk quota exceeded"
             ? 0
             : 1;
}

TEST_F(Files, AFileThatCannotBeClosedReplacesNothing) {
  if (!can_fail_system_calls()) GTEST_SKIP() << "the machine permits no filter of system calls";
  ASSERT_TRUE(write_file(folder_ / "key", "old"));

  EXPECT_EXIT(::_exit(write_where_closing_fails(folder_ / "key")), testing::ExitedWithCode(0), "");

  EXPECT_EQ(*read_file(folder_ / "key"), "old");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "key.new"));
}

TEST_F(Files, AFileThatCannotBeRenamedIsRemoved) {
  ASSERT_TRUE(make_private_folder(folder_ / "key" / "full"));

  EXPECT_FALSE(write_file(folder_ / "key", "new"));

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
namespace {

namespace fs = std::filesystem;

/// Nested folders whose full path exceeds the maximum length.
void make_deep(const std::filesystem::path& root, int depth) {
  UniqueFd at(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < depth; ++i) {
    ASSERT_EQ(::mkdirat(at.get(), "d", 0700), 0);
    UniqueFd inner(::openat(at.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(inner);
    at = std::move(inner);
  }
}

TEST(RemoveTree, RemovesFilesFoldersAndLinksButNotTheTargetsOfLinks) {
  const TestFolder folder;
  std::filesystem::create_directories(folder / "tree/a/b");
  std::filesystem::create_directories(folder / "kept");
  ASSERT_TRUE(write_new_file(folder / "tree/a/file", "x"));
  ASSERT_TRUE(write_new_file(folder / "kept/file", "x"));
  std::filesystem::create_directory_symlink(folder / "kept", folder / "tree/link");
  std::filesystem::create_directory_symlink(folder / "kept", folder / "itself");

  EXPECT_TRUE(remove_tree(folder / "tree"));
  EXPECT_TRUE(remove_tree(folder / "itself"));
  EXPECT_TRUE(remove_tree(folder / "kept/file"));
  EXPECT_TRUE(remove_tree(folder / "never/there"));

  EXPECT_FALSE(std::filesystem::exists(folder / "tree"));
  EXPECT_TRUE(std::filesystem::is_empty(folder / "kept"));
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(folder / "itself")));
}

TEST(RemoveTree, RemovesATreeDeeperThanTheLimitOfOpenFiles) {
  const TestFolder folder;
  std::filesystem::create_directories(folder / "tree/.removed-1/full");
  ASSERT_TRUE(write_new_file(folder / "tree/.removed-2", "in the way"));
  make_deep(folder / "tree", 3000);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = std::min<rlim_t>(256, before.rlim_cur);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);

  const auto removed = remove_tree(folder / "tree");

  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(removed) << removed.error().to_string();
  EXPECT_FALSE(std::filesystem::exists(folder / "tree"));
}

// Root can access every folder, so the test shows nothing for root.
TEST(RemoveTree, RemovesFoldersThatDenyAccessToTheirOwner) {
  const TestFolder folder;
  for (const mode_t mode : {0, 0100, 0200, 0400, 0500, 0600}) {
    std::filesystem::create_directories(folder / "tree/a/b");
    ASSERT_TRUE(write_new_file(folder / "tree/a/b/file", "x"));
    for (const char* closed : {"tree/a/b", "tree/a", "tree"}) {
      ASSERT_EQ(::chmod((folder / closed).c_str(), mode), 0);
    }

    const auto removed = remove_tree(folder / "tree");

    EXPECT_TRUE(removed) << removed.error().to_string();
    EXPECT_FALSE(std::filesystem::exists(folder / "tree"));
  }
}

}  // namespace
}  // namespace muster::base
