#include "engine/rank_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/files.h"
#include "base/test_folder.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

TEST(RankFiles, ShowTheRegisteredRanksAndTheWorldSize) {
  const base::TestFolder folder;
  ASSERT_TRUE(sign_in(folder, {.rank = 0, .world_size = 4}));
  ASSERT_TRUE(sign_in(folder, {.rank = 12, .world_size = 4}));
  ASSERT_TRUE(sign_in(folder, {.rank = 12, .world_size = 16}));

  auto ranks = ranks_in(folder);

  std::sort(ranks.begin(), ranks.end(),
            [](const SignedRank& a, const SignedRank& b) { return a.rank < b.rank; });
  EXPECT_EQ(ranks, (std::vector<SignedRank>{{0, 4}, {12, 16}}));
}

TEST(RankFiles, OfNoFolderAreNone) {
  EXPECT_EQ(ranks_in("/nowhere"), std::vector<SignedRank>());
}

TEST(RankFiles, ThatAreNotRegularFilesDoNotBlockTheReader) {
  const base::TestFolder folder;
  ASSERT_EQ(::mkfifo((folder / "0").c_str(), 0600), 0);
  ASSERT_TRUE(base::write_new_file(folder / "size", "9"));
  fs::create_symlink("size", folder / "1");
  ASSERT_TRUE(base::write_new_file(folder / "x2", "9"));

  EXPECT_EQ(rank_in(folder, "0"), (SignedRank{0, 0}));
  EXPECT_EQ(rank_in(folder, "1"), (SignedRank{1, 0}));
  EXPECT_EQ(rank_in(folder, "x2"), std::nullopt);
  EXPECT_EQ(rank_in(folder, "-1"), (SignedRank{kReached, 0}));
  EXPECT_EQ(rank_in(folder, "-3"), std::nullopt);
}

TEST(RankFiles, ThroughALinkAreNotRead) {
  const base::TestFolder folder;
  const base::TestFolder elsewhere;
  ASSERT_TRUE(sign_in(elsewhere, {.rank = 0, .world_size = 4}));
  fs::create_directory_symlink(elsewhere.path(), folder / "ranks");

  EXPECT_EQ(ranks_in(folder / "ranks"), std::vector<SignedRank>());
}

TEST(RankFiles, AreNotWrittenIfAPipeIsInTheirPlace) {
  const base::TestFolder folder;
  ASSERT_EQ(::mkfifo((folder / "0").c_str(), 0600), 0);

  EXPECT_FALSE(sign_in(folder, {.rank = 0, .world_size = 4}));
}

}  // namespace
}  // namespace muster::engine
