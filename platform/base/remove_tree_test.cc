#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/files.h"
#include "base/test_folder.h"

namespace muster::base {
namespace {

namespace fs = std::filesystem;

/// Folders in one another, of which no path has room for all.
void make_deep(const fs::path& root, int depth) {
  UniqueFd at(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < depth; ++i) {
    ASSERT_EQ(::mkdirat(at.get(), "d", 0700), 0);
    UniqueFd inner(::openat(at.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(inner);
    at = std::move(inner);
  }
}

TEST(RemoveTree, RemovesFilesFoldersAndLinksButNotWhatTheseLeadTo) {
  const TestFolder folder;
  fs::create_directories(folder / "tree/a/b");
  fs::create_directories(folder / "kept");
  ASSERT_TRUE(write_new_file(folder / "tree/a/file", "x"));
  ASSERT_TRUE(write_new_file(folder / "kept/file", "x"));
  fs::create_directory_symlink(folder / "kept", folder / "tree/link");
  fs::create_directory_symlink(folder / "kept", folder / "itself");

  EXPECT_TRUE(remove_tree(folder / "tree"));
  EXPECT_TRUE(remove_tree(folder / "itself"));
  EXPECT_TRUE(remove_tree(folder / "kept/file"));
  EXPECT_TRUE(remove_tree(folder / "never/there"));

  EXPECT_FALSE(fs::exists(folder / "tree"));
  EXPECT_TRUE(fs::is_empty(folder / "kept"));
  EXPECT_FALSE(fs::exists(fs::symlink_status(folder / "itself")));
}

TEST(RemoveTree, RemovesOneThatIsDeeperThanThisProgramMayHaveFilesOpen) {
  const TestFolder folder;
  fs::create_directories(folder / "tree/.removed-1/full");
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
  EXPECT_FALSE(fs::exists(folder / "tree"));
}

// Root passes through every folder: there it shows nothing.
TEST(RemoveTree, RemovesFoldersThatTheirOwnerHasClosed) {
  const TestFolder folder;
  for (const mode_t mode : {0, 0100, 0200, 0400, 0500, 0600}) {
    fs::create_directories(folder / "tree/a/b");
    ASSERT_TRUE(write_new_file(folder / "tree/a/b/file", "x"));
    for (const char* closed : {"tree/a/b", "tree/a", "tree"}) {
      ASSERT_EQ(::chmod((folder / closed).c_str(), mode), 0);
    }

    const auto removed = remove_tree(folder / "tree");

    EXPECT_TRUE(removed) << removed.error().to_string();
    EXPECT_FALSE(fs::exists(folder / "tree"));
  }
}

}  // namespace
}  // namespace muster::base
