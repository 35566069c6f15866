#include "engine/shim/task_limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "base/test_folder.h"
#include "engine/fake_machine.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

// --- limits that the kernel enforces

std::string text_in(const fs::path& file) {
  const auto text = base::read_file(file, 1 << 16);
  return text ? *text : "(none)";
}

/// A folder that only looks like a control group: the kernel's own files are made by the test.
class TaskGroupsTest : public testing::Test {
 protected:
  TaskGroupsTest() {
    fs::create_directories(folder_ / "muster/task");
    for (const char* file :
         {"muster/task/memory.max", "muster/task/cgroup.procs", "cgroup.procs"}) {
      EXPECT_TRUE(base::write_new_file(folder_ / file, ""));
    }
  }
  TaskGroups groups(std::vector<std::pair<std::string, std::string>> settings) const {
    return TaskGroups({{.folder = (folder_ / "muster/task").string(),
                        .home = fs::path(folder_).string(),
                        .settings = std::move(settings)}});
  }

  const base::TestFolder folder_;
};

TEST_F(TaskGroupsTest, SetsLimitsAndMovesThisProcessInAndBack) {
  const TaskGroups made = groups({{"memory.max", "1048576"}});

  EXPECT_TRUE(made.make());
  EXPECT_EQ(text_in(folder_ / "muster/task/memory.max"), "1048576");
  EXPECT_TRUE(made.enter());
  EXPECT_EQ(text_in(folder_ / "muster/task/cgroup.procs"), "0");
  EXPECT_EQ(text_in(folder_ / "cgroup.procs"), "");
  made.leave();
  EXPECT_EQ(text_in(folder_ / "cgroup.procs"), "0");
}

TEST_F(TaskGroupsTest, ALimitThatTheKernelDoesNotHaveIsAnErrorWithItsFile) {
  const auto made = groups({{"pids.max", "7"}}).make();

  ASSERT_FALSE(made);
  EXPECT_NE(made.error().what.find("cannot write '7' to "), std::string::npos);
  EXPECT_NE(made.error().what.find("muster/task/pids.max"), std::string::npos);
}

TEST_F(TaskGroupsTest, ReadsKillsAndPeakOfBothVersions) {
  EXPECT_EQ(groups({}).memory_kills(), 0);
  EXPECT_EQ(groups({}).memory_peak(), 0);
  const fs::path task = folder_ / "muster/task";
  ASSERT_TRUE(base::write_new_file(task / "memory.events", "low 0\noom 3\noom_kill 2\n"));
  ASSERT_TRUE(base::write_new_file(task / "memory.peak", "4096\n"));
  EXPECT_EQ(groups({}).memory_kills(), 2);
  EXPECT_EQ(groups({}).memory_peak(), 4096);
  ASSERT_TRUE(base::write_new_file(task / "memory.oom_control",
                                   "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n"));
  ASSERT_TRUE(base::write_new_file(task / "memory.max_usage_in_bytes", "8192\n"));
  EXPECT_EQ(groups({}).memory_kills(), 5);
  EXPECT_EQ(groups({}).memory_peak(), 8192);
}

TEST_F(TaskGroupsTest, AProgramBesideTheTasksOwnEntersTheGroupsThatExist) {
  const TaskGroups gone(
      {{.folder = (folder_ / "muster/other").string(), .home = "/", .settings = {}}});

  EXPECT_TRUE(gone.enter());
}

TEST(ResourceLimits, AreLoweredAndNeverRaised) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool set = set_resource_limits({.open_files = 50, .file_bytes = 4096}, false) &&
                     set_resource_limits({.open_files = 60}, false);
    rlimit files{};
    rlimit size{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    ::getrlimit(RLIMIT_FSIZE, &size);
    ::_exit(set && files.rlim_max == 50 && files.rlim_cur == 50 && size.rlim_cur == 4096 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// --- limits that the shim measures

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

// --- kills by the kernel

constexpr const char* kVmstat = "nr_free_pages 7\noom_kill 12\nworkingset 1\n";

TEST(OomKills, OfTheMachineStandInItsStatistics) {
  EXPECT_EQ(kills_on_machine(FakeMachine(FakeMachine::Files{{"proc/vmstat", kVmstat}}).root()),
            12U);
  EXPECT_EQ(kills_on_machine(FakeMachine({}).root()), 0U);
}

TEST(OomKills, OfAGroupOfVersionTwoStandAmongItsEvents) {
  const FakeMachine machine(
      {{"proc/self/cgroup", "0::/jobs/one\n"},
       {"sys/fs/cgroup/jobs/one/memory.events", "low 0\nmax 9\noom 3\noom_kill 2\n"}});

  EXPECT_EQ(kills_in_group(machine.root()), 2U);
}

TEST(OomKills, OfAGroupOfVersionOneStandInItsControl) {
  const FakeMachine machine({{"proc/self/cgroup", "5:cpu,memory:/a\n0::/\n"},
                             {"sys/fs/cgroup/memory/a/memory.oom_control",
                              "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n"}});

  EXPECT_EQ(kills_in_group(machine.root()), 4U);
}

TEST(OomKills, OfAContainerThatSeesItsGroupAtTheTopAreFoundThere) {
  const FakeMachine machine(
      {{"proc/self/cgroup", "9:memory:/docker/0123\n"},
       {"sys/fs/cgroup/memory/memory.oom_control", "under_oom 0\noom_kill 1\n"},
       {"proc/vmstat", kVmstat}});

  EXPECT_EQ(kills_in_container(machine.root()), 1U);
}

TEST(OomKills, WhereNoGroupCountsThemTheMachineDoes) {
  const FakeMachine machine({{"proc/self/cgroup", "0::/\n"}, {"proc/vmstat", kVmstat}});

  EXPECT_EQ(kills_in_group(machine.root()), std::nullopt);
  EXPECT_EQ(kills_in_container(machine.root()), 12U);
}

}  // namespace

}  // namespace muster::engine
