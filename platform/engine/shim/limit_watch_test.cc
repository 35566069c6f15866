#include "engine/shim/limit_watch.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/test_folder.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

/// A /proc in which process 1 has the children 10 and 11, and 11 has 12.
class LimitWatchTest : public testing::Test {
 protected:
  LimitWatchTest() {
    add(1, "10 11", 0, 0, 1);
    add(10, "", 1000, 24, 2);
    add(11, "12", 1024, 0, 1);
    add(12, "", 0, 1000, 3);
  }

  void add(int pid, const std::string& children, int anonymous_kib, int shared_kib, int threads) {
    const std::string name = std::to_string(pid);
    const fs::path folder = proc_ / name;
    fs::create_directories(folder / "task" / name);
    EXPECT_TRUE(base::write_new_file(folder / "task" / name / "children", children));
    EXPECT_TRUE(base::write_new_file(folder / "status",
                                     "Name:\tx\nRssAnon:\t    " + std::to_string(anonymous_kib) +
                                         " kB\nRssFile:\t  999 kB\nRssShmem:\t " +
                                         std::to_string(shared_kib) + " kB\nThreads:\t" +
                                         std::to_string(threads) + "\n"));
  }

  std::optional<Excess> look(TaskLimits limits) {
    LimitWatch watch(std::move(limits), 1, fs::path(proc_));
    EXPECT_EQ(watch.milliseconds_to_wait(), 0);
    auto excess = watch.look();
    peak_ = watch.memory_peak();
    return excess;
  }

  const base::TestFolder proc_;
  int64_t peak_ = 0;
};

TEST_F(LimitWatchTest, CountsTheMemoryOfAllProcessesWithoutTheirFiles) {
  constexpr int64_t kUsed = (1000 + 24 + 1024 + 1000) * 1024;
  EXPECT_EQ(look({.memory_bytes = kUsed}), std::nullopt);
  EXPECT_EQ(peak_, kUsed);
  const auto excess = look({.memory_bytes = kUsed - 1});
  EXPECT_EQ(excess, (Excess{.kind = Excess::Kind::kMemory, .used = kUsed, .limit = kUsed - 1}));
  EXPECT_EQ(sentence_of(*excess), "its memory limit is 2.9Mi, its peak was 2.9Mi");
}

TEST_F(LimitWatchTest, CountsProcessesAndTheirThreads) {
  EXPECT_EQ(look({.processes = 6}), std::nullopt);
  const auto excess = look({.processes = 5});
  EXPECT_EQ(excess, (Excess{.kind = Excess::Kind::kProcesses, .used = 6, .limit = 5}));
  EXPECT_EQ(sentence_of(*excess),
            "it had 6 processes and threads; the limit is 5 (tasks.processes)");
}

TEST_F(LimitWatchTest, LeavesToControlGroupsWhatTheyLimit) {
  TaskLimits limits{.memory_bytes = 1, .processes = 1};
  limits.groups = {{.folder = "/a", .home = "/", .settings = {{"memory.max", "1"}}},
                   {.folder = "/b", .home = "/", .settings = {{"pids.max", "1"}}}};
  LimitWatch watch(limits, 1, fs::path(proc_));

  EXPECT_EQ(watch.milliseconds_to_wait(), -1);
  EXPECT_EQ(watch.look(), std::nullopt);
}

TEST_F(LimitWatchTest, MeasuresScratchFoldersWithAllThatIsInThem) {
  const base::TestFolder scratch;
  fs::create_directories(scratch / "a/b");
  ASSERT_TRUE(base::write_new_file(scratch / "a/b/file", std::string(200'000, 'x')));
  fs::create_directory_symlink(fs::path(proc_), scratch / "link");
  const std::string folder = fs::path(scratch).string();

  EXPECT_EQ(look({.scratch_bytes = 400'000, .scratch = {folder}}), std::nullopt);
  const auto excess = look({.scratch_bytes = 100'000, .scratch = {folder}});
  ASSERT_TRUE(excess);
  EXPECT_EQ(excess->kind, Excess::Kind::kScratch);
  EXPECT_GE(excess->used, 200'000);
}

TEST(LimitWatch, WithoutLimitsItNeverLooks) {
  LimitWatch watch;
  EXPECT_EQ(watch.milliseconds_to_wait(), -1);
  EXPECT_EQ(watch.look(), std::nullopt);
}

}  // namespace
}  // namespace muster::engine
