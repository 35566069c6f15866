#include "engine/shim/folder_watch.h"

#include <gtest/gtest.h>
#include <poll.h>

#include "base/files.h"
#include "base/test_folder.h"

namespace muster::engine {
namespace {

/// Whether it becomes readable before long.
bool tells(const FolderWatch& watch) {
  pollfd watched{watch.descriptor(), POLLIN, 0};
  return ::poll(&watched, 1, 60'000) > 0;
}

TEST(FolderWatch, AtFirstAllHasChanged) {
  const base::TestFolder folder;
  FolderWatch watch;
  ASSERT_TRUE(watch.add(folder));

  EXPECT_TRUE(watch.take(folder).has("anything"));
  EXPECT_FALSE(watch.take(folder).has("anything"));
}

TEST(FolderWatch, NamesWhatHasChangedInWhichFolder) {
  const base::TestFolder one;
  const base::TestFolder other;
  FolderWatch watch;
  ASSERT_TRUE(watch.add(one) && watch.add(other));
  watch.take(one);
  watch.take(other);

  ASSERT_TRUE(base::write_new_file(one / "a", "1"));
  ASSERT_TRUE(base::write_file(other / "b", "2"));

  ASSERT_TRUE(tells(watch));
  const FolderWatch::Changes of_one = watch.take(one);
  EXPECT_TRUE(of_one.has("a"));
  EXPECT_FALSE(of_one.has("b"));
  EXPECT_TRUE(watch.take(other).has("b"));
}

TEST(FolderWatch, HasTheChangesOfAFolderThatWereReadWithThoseOfAnother) {
  const base::TestFolder folder;
  const auto one = folder / "one";
  const auto other = folder / "other";
  ASSERT_TRUE(base::make_private_folder(one) && base::make_private_folder(other));
  FolderWatch watch;
  ASSERT_TRUE(watch.add(one) && watch.add(other));
  watch.take(one);
  watch.take(other);
  EXPECT_FALSE(watch.has_changes());

  ASSERT_TRUE(base::write_new_file(one / "a", "1"));
  watch.take(other);

  pollfd silent{watch.descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&silent, 1, 0), 0) << "the kernel reports a change once";
  EXPECT_TRUE(watch.has_changes());
  EXPECT_TRUE(watch.take(one).has("a"));
  EXPECT_FALSE(watch.has_changes());
}

TEST(FolderWatch, OfAFolderThatIsNotThereCanBeTriedAgain) {
  const base::TestFolder folder;
  FolderWatch watch;
  EXPECT_FALSE(watch.add(folder / "later"));
  ASSERT_TRUE(base::make_private_folder(folder / "later"));

  EXPECT_TRUE(watch.add(folder / "later"));
  EXPECT_TRUE(watch.take(folder / "later").has("anything"));
}

TEST(FolderWatch, ThatTheKernelHasNoRoomForTellsOfEverythingAgainAndAgain) {
  const base::TestFolder folder;
  FolderWatch watch(false);
  EXPECT_FALSE(watch.add(folder / "later"));
  ASSERT_TRUE(watch.add(folder));
  watch.take(folder);

  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(tells(watch));
    EXPECT_TRUE(watch.take(folder).has("anything"));
  }
}

}  // namespace
}  // namespace muster::engine
