#include "engine/shim/task_limits.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "base/test_folder.h"
#include "base/unique_fd.h"
#include "engine/fake_machine.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

// --- limits that the kernel enforces

std::string text_in(const fs::path& file) {
  const auto text = base::read_file(file, 1 << 16);
  return text ? *text : "(none)";
}

/// A folder that imitates a control group: the test makes the files that the kernel would make.
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

TEST_F(TaskGroupsTest, SetsLimitsAndMovesThisProcessInAndOut) {
  const TaskGroups made = groups({{"memory.max", "1048576"}});

  EXPECT_TRUE(made.make());
  EXPECT_EQ(text_in(folder_ / "muster/task/memory.max"), "1048576");
  EXPECT_TRUE(made.enter());
  EXPECT_EQ(text_in(folder_ / "muster/task/cgroup.procs"), "0");
  EXPECT_EQ(text_in(folder_ / "cgroup.procs"), "");
  made.leave();
  EXPECT_EQ(text_in(folder_ / "cgroup.procs"), "0");
}

TEST_F(TaskGroupsTest, TheHolderOfATaskStaysInAGroupAboveTheTask) {
  ASSERT_TRUE(base::write_new_file(folder_ / "muster/cgroup.procs", ""));
  const TaskGroups made({{.folder = (folder_ / "muster/task").string(),
                          .home = fs::path(folder_).string(),
                          .holder = (folder_ / "muster").string(),
                          .settings = {}}});

  made.leave();
  EXPECT_EQ(text_in(folder_ / "muster/cgroup.procs"), "0");
  EXPECT_EQ(text_in(folder_ / "cgroup.procs"), "");
  made.go_home();
  EXPECT_EQ(text_in(folder_ / "cgroup.procs"), "0");
}

TEST_F(TaskGroupsTest, KillsTheProcessesInThem) {
  const pid_t child = ::fork();
  if (child == 0) {
    while (true) ::pause();
  }
  const std::string both = std::to_string(::getpid()) + "\n" + std::to_string(child) + "\n";
  ASSERT_TRUE(base::write_file(folder_ / "muster/task/cgroup.procs", both));

  groups({}).kill();

  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

TEST_F(TaskGroupsTest, LeavesTheKillingToVersion2) {
  ASSERT_TRUE(base::write_new_file(folder_ / "muster/task/cgroup.kill", ""));
  ASSERT_TRUE(base::write_file(folder_ / "muster/task/cgroup.procs", "1\n"));

  groups({}).kill();

  EXPECT_EQ(text_in(folder_ / "muster/task/cgroup.kill"), "1");
}

TEST_F(TaskGroupsTest, MovesOneThreadWhereVersion1HasAFileForThreads) {
  ASSERT_TRUE(base::write_new_file(folder_ / "muster/task/tasks", ""));
  ASSERT_TRUE(base::write_new_file(folder_ / "tasks", ""));
  const TaskGroups made = groups({});

  EXPECT_TRUE(made.enter());
  made.leave();

  EXPECT_EQ(text_in(folder_ / "muster/task/tasks"), "0");
  EXPECT_EQ(text_in(folder_ / "tasks"), "0");
  EXPECT_EQ(text_in(folder_ / "muster/task/cgroup.procs"), "");
  EXPECT_EQ(text_in(folder_ / "cgroup.procs"), "");
}

TEST_F(TaskGroupsTest, TheErrorNamesTheFileOfAMissingLimit) {
  const auto made = groups({{"pids.max", "7"}}).make();

  ASSERT_FALSE(made);
  EXPECT_NE(made.error().what.find("cannot write '7' to "), std::string::npos);
  EXPECT_NE(made.error().what.find("muster/task/pids.max"), std::string::npos);
}

TEST_F(TaskGroupsTest, ReadsKillsAndPeakOfBothVersions) {
  using job::LimitReached;
  const TaskLimits limits{.memory_bytes = 4096};
  EXPECT_EQ(groups({}).reached(limits), std::nullopt);
  const fs::path task = folder_ / "muster/task";
  ASSERT_TRUE(base::write_new_file(task / "memory.events", "low 0\noom 3\noom_kill 2\n"));
  EXPECT_EQ(groups({}).reached(limits), (LimitReached{job::Limit::kMemory, 4096, 0}));
  ASSERT_TRUE(base::write_new_file(task / "memory.peak", "4090\n"));
  EXPECT_EQ(groups({}).reached(limits), (LimitReached{job::Limit::kMemory, 4096, 4090}));
  ASSERT_TRUE(base::write_new_file(task / "memory.oom_control",
                                   "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n"));
  EXPECT_EQ(groups({}).reached(limits), std::nullopt) << "version 1 comes first";
  ASSERT_TRUE(base::write_file(task / "memory.oom_control", "under_oom 0\noom_kill 5\n"));
  ASSERT_TRUE(base::write_new_file(task / "memory.max_usage_in_bytes", "8192\n"));
  EXPECT_EQ(groups({}).reached({.memory_bytes = 8192}),
            (LimitReached{job::Limit::kMemory, 8192, 8192}));
}

TEST_F(TaskGroupsTest, ALimitOfAGroupAboveHasNoBoundThatIsKnown) {
  const fs::path task = folder_ / "muster/task";
  ASSERT_TRUE(base::write_new_file(task / "memory.events", "oom_kill 1\n"));
  ASSERT_TRUE(base::write_new_file(task / "memory.peak", "4096\n"));

  EXPECT_EQ(groups({}).reached({.memory_bytes = 8192}),
            (job::LimitReached{job::Limit::kMemory, 0, 4096}));
  EXPECT_EQ(groups({}).reached({}), (job::LimitReached{job::Limit::kMemory, 0, 4096}));
}

TEST_F(TaskGroupsTest, ReadsHowManyProcessesWereRefused) {
  const fs::path task = folder_ / "muster/task";
  ASSERT_TRUE(base::write_new_file(task / "pids.events", "max 0\n"));
  EXPECT_EQ(groups({}).reached({.processes = 40}), std::nullopt);
  ASSERT_TRUE(base::write_file(task / "pids.events", "max 3\n"));
  ASSERT_TRUE(base::write_new_file(task / "pids.peak", "40\n"));

  EXPECT_EQ(groups({}).reached({.processes = 40}),
            (job::LimitReached{job::Limit::kProcesses, 40, 40}));
}

TEST_F(TaskGroupsTest, ATaskThatHadAllItsProcessesInItsNamespaceHasReachedTheLimit) {
  const fs::path task = folder_ / "muster/task";
  const TaskLimits limits{.processes = 40, .user_processes = 40};
  EXPECT_EQ(limits.processes_of_group(), 40 + kProcessesBeside);
  ASSERT_TRUE(base::write_new_file(task / "pids.events", "max 0\n"));
  ASSERT_TRUE(base::write_new_file(task / "pids.peak", "40\n"));
  EXPECT_EQ(groups({}).reached(limits), std::nullopt);
  ASSERT_TRUE(base::write_file(task / "pids.peak", "41\n"));

  EXPECT_EQ(groups({}).reached(limits), (job::LimitReached{job::Limit::kProcesses, 40, 40}));
}

TEST_F(TaskGroupsTest, AreRemovedWithTheHolderAndTheFolderOfAllTasks) {
  const base::TestFolder root;
  fs::create_directories(root / "muster/one/task");
  fs::create_directories(root / "muster/two/task");
  const auto groups_named = [&](const char* name) {
    return TaskGroups({{.folder = (root / "muster" / name / "task").string(),
                        .home = fs::path(root).string(),
                        .holder = (root / "muster" / name).string(),
                        .settings = {}}});
  };
  fs::create_directory(root / "muster/one/task/in-use");
  EXPECT_FALSE(groups_named("one").remove());
  EXPECT_TRUE(groups_named("two").remove());
  EXPECT_FALSE(fs::exists(root / "muster/two"));
  fs::remove(root / "muster/one/task/in-use");

  EXPECT_TRUE(groups_named("one").remove());
  EXPECT_FALSE(fs::exists(root / "muster"));
  EXPECT_TRUE(groups_named("one").remove()) << "they are gone";
}

TEST_F(TaskGroupsTest, AnotherProgramEntersTheExistingGroups) {
  const TaskGroups gone(
      {{.folder = (folder_ / "muster/other").string(), .home = "/", .settings = {}}});

  EXPECT_TRUE(gone.enter());
}

TEST(ResourceLimits, AreLoweredAndNeverRaised) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool set = set_resource_limits({.open_files = 50, .file_bytes = 4096}) &&
                     set_resource_limits({.open_files = 60});
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

TEST(ResourceLimits, IncludeTheNiceValue) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int before = ::getpriority(PRIO_PROCESS, 0);
    const bool same = set_resource_limits({}) && ::getpriority(PRIO_PROCESS, 0) == before;
    ::_exit(same && set_resource_limits({.niceness = 19}) && ::getpriority(PRIO_PROCESS, 0) == 19
                ? 0
                : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(BoundCpus, AreThoseOfTheProcessAndItsChildren) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  int last = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before)) last = cpu;
  }
  const pid_t child = ::fork();
  if (child == 0) {
    const bool bound = bool{set_resource_limits({.cpus = {last}})};
    cpu_set_t now;
    ::sched_getaffinity(0, sizeof now, &now);
    ::_exit(bound && CPU_COUNT(&now) == 1 && CPU_ISSET(last, &now) ? 0 : 1);
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

  std::optional<job::LimitReached> look(TaskLimits limits) {
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
  EXPECT_EQ(excess, (job::LimitReached{job::Limit::kMemory, kUsed - 1, kUsed}));
}

TEST_F(LimitWatchTest, CountsMemoryThatProcessesShareOnce) {
  for (const int pid : {10, 11, 12}) {
    ASSERT_TRUE(base::write_new_file(proc_ / std::to_string(pid) / "smaps_rollup",
                                     "Rss: 1024 kB\nPss: 400 kB\nPss_Anon: 300 kB\n"
                                     "Pss_File: 60 kB\nPss_Shmem: 40 kB\n"));
  }
  constexpr int64_t kShares = int64_t{3} * 340 * 1024;
  EXPECT_EQ(look({.memory_bytes = kShares}), std::nullopt);
  EXPECT_EQ(peak_, kShares);
  EXPECT_EQ(look({.memory_bytes = kShares - 1}),
            (job::LimitReached{job::Limit::kMemory, kShares - 1, kShares}));
}

TEST_F(LimitWatchTest, CountsProcessesAndTheirThreads) {
  EXPECT_EQ(look({.processes = 6}), std::nullopt);
  const auto excess = look({.processes = 5});
  EXPECT_EQ(excess, (job::LimitReached{job::Limit::kProcesses, 5, 6}));
}

TEST_F(LimitWatchTest, CountsProgramsThatWereStartedInTheSandboxFromOutside) {
  add(20, "", 512, 0, 1);
  add(30, "", 4096, 0, 1);
  for (const auto& [process, space] :
       {std::pair("self", "pid:[1]"), std::pair("1", "pid:[1]"), std::pair("10", "pid:[1]"),
        std::pair("11", "pid:[2]"), std::pair("12", "pid:[2]"), std::pair("20", "pid:[2]"),
        std::pair("30", "pid:[1]")}) {
    fs::create_directories(proc_ / process / "ns");
    fs::create_symlink(space, proc_ / process / "ns/pid");
  }
  constexpr int64_t kUsed = (1000 + 24 + 1024 + 1000 + 512) * 1024;

  EXPECT_EQ(look({.memory_bytes = kUsed}), std::nullopt);
  EXPECT_EQ(look({.memory_bytes = kUsed - 1}),
            (job::LimitReached{job::Limit::kMemory, kUsed - 1, kUsed}));
}

TEST_F(LimitWatchTest, LeavesToAContainerWhatItLimits) {
  LimitWatch watch({.memory_bytes = 1, .processes = 1, .is_held_by_container = true}, 1,
                   fs::path(proc_));

  EXPECT_EQ(watch.milliseconds_to_wait(), -1);
}

TEST_F(LimitWatchTest, IgnoresWhatControlGroupsLimit) {
  TaskLimits limits{.memory_bytes = 1, .processes = 1};
  limits.groups = {{.folder = "/a", .home = "/", .settings = {{"memory.max", "1"}}},
                   {.folder = "/b", .home = "/", .settings = {{"pids.max", "1"}}}};
  LimitWatch watch(limits, 1, fs::path(proc_));

  EXPECT_EQ(watch.look(), std::nullopt);
}

/// What a watch reports while the kernel kills this many processes between two looks.
std::optional<job::LimitReached> report_at_kills(int kills_between_looks) {
  const base::TestFolder group;
  TaskLimits limits{.memory_bytes = 4096};
  limits.groups = {
      {.folder = group.path().string(), .home = "/", .settings = {{"memory.max", "4096"}}}};
  EXPECT_TRUE(base::write_new_file(group / "memory.peak", "4096\n"));
  LimitWatch watch(limits, 1, "/proc", std::chrono::milliseconds(0));
  for (int looks = 1; looks <= 5; ++looks) {
    const std::string count = std::to_string(looks * kills_between_looks);
    EXPECT_TRUE(base::write_file(group / "memory.events", "oom_kill " + count + "\n"));
    if (const auto reached = watch.look()) return reached;
  }
  return std::nullopt;
}

TEST(LimitWatchOfKills, EndsATaskWhoseProcessesAreKilledAllTheTime) {
  EXPECT_EQ(report_at_kills(20), (job::LimitReached{job::Limit::kMemory, 4096, 4096}));
  EXPECT_EQ(report_at_kills(5), std::nullopt);
}

/// A task with three processes at its limit, whose CPU time grows between two looks.
class LimitWatchOfForks : public LimitWatchTest {
 protected:
  void use(int system, int user) {
    system_ += system;
    user_ += user;
    for (const char* pid : {"10", "11", "12"}) {
      const std::string times = std::to_string(user_) + " " + std::to_string(system_);
      EXPECT_TRUE(base::write_file(
          proc_ / pid / "stat",
          std::string(pid) + " (x) R 1 1 1 0 -1 0 0 0 0 0 " + times + " 0 0 20 0 1 0 5 0 0 0\n"));
    }
  }

  /// What the watch reports in six looks, after two of which it stops the task.
  std::optional<job::LimitReached> report(const TaskLimits& limits, int system, int user) {
    LimitWatch watch(limits, 1, fs::path(proc_), std::chrono::milliseconds(0));
    for (int looks = 0; looks < 6; ++looks) {
      use(system, user);
      if (const auto reached = watch.look()) return reached;
    }
    return std::nullopt;
  }

  int system_ = 0;
  int user_ = 0;
};

TEST_F(LimitWatchOfForks, EndsATaskThatHasAllItsProcessesAndStaysInTheKernel) {
  // 2 + 1 + 3 threads.
  const TaskLimits limits{.processes = 6, .user_processes = 6};
  EXPECT_EQ(report(limits, 20, 2), (job::LimitReached{job::Limit::kProcesses, 6, 6}));
  EXPECT_EQ(report(limits, 2, 20), std::nullopt) << "it computes";
  EXPECT_EQ(report(limits, 0, 0), std::nullopt) << "it waits";
  EXPECT_EQ(report({.processes = 9, .user_processes = 9}, 20, 2), std::nullopt)
      << "it may have more";
}

TEST_F(LimitWatchOfForks, CountsTheProcessesOfTheControlGroup) {
  const base::TestFolder group;
  TaskLimits limits{.processes = 40, .user_processes = 40};
  limits.groups = {
      {.folder = group.path().string(), .home = "/", .settings = {{"pids.max", "72"}}}};
  ASSERT_TRUE(base::write_new_file(group / "cgroup.procs", "10\n11\n12\n"));
  ASSERT_TRUE(base::write_new_file(group / "pids.current", "41\n"));
  EXPECT_EQ(report(limits, 20, 2), (job::LimitReached{job::Limit::kProcesses, 40, 40}));
  ASSERT_TRUE(base::write_file(group / "pids.current", "30\n"));
  EXPECT_EQ(report(limits, 20, 2), std::nullopt);
}

TEST_F(LimitWatchTest, MeasuresScratchFoldersWithTheirContent) {
  const base::TestFolder scratch;
  fs::create_directories(scratch / "a/b");
  ASSERT_TRUE(base::write_new_file(scratch / "a/b/file", std::string(200'000, 'x')));
  fs::create_directory_symlink(fs::path(proc_), scratch / "link");
  const std::string folder = fs::path(scratch).string();

  EXPECT_EQ(look({.scratch_bytes = 400'000, .scratch = {folder}}), std::nullopt);
  const auto excess = look({.scratch_bytes = 100'000, .scratch = {folder}});
  ASSERT_TRUE(excess);
  EXPECT_EQ(excess->limit, job::Limit::kScratch);
  EXPECT_GE(excess->peak, 200'000);
}

TEST_F(LimitWatchTest, CountsFilesWithoutANameThatAreOpenOnce) {
  const base::TestFolder scratch;
  const std::string file = (scratch / "file").string();
  ASSERT_TRUE(base::write_new_file(file, std::string(200'000, 'x')));
  const base::UniqueFd open(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  const fs::path descriptor = "/proc/self/fd/" + std::to_string(open.get());
  for (const char* process : {"10", "12"}) {
    fs::create_directories(proc_ / process / "fd");
    fs::create_symlink(descriptor, proc_ / process / "fd/3");
  }
  const std::string folder = fs::path(scratch).string();
  EXPECT_EQ(look({.scratch_bytes = 300'000, .scratch = {folder}}), std::nullopt);
  fs::remove(file);

  EXPECT_EQ(look({.scratch_bytes = 300'000, .scratch = {folder}}), std::nullopt);
  EXPECT_NE(look({.scratch_bytes = 100'000, .scratch = {folder}}), std::nullopt);
}

TEST(LimitWatch, WithoutLimitsMeasuresNothing) {
  LimitWatch watch;
  EXPECT_EQ(watch.milliseconds_to_wait(), -1);
  EXPECT_EQ(watch.look(), std::nullopt);
}

// --- kills by the kernel

constexpr const char* kVmstat = "nr_free_pages 7\noom_kill 12\nworkingset 1\n";

TEST(OomKills, OfTheMachineAreReadFromVmstat) {
  EXPECT_EQ(kills_on_machine(FakeMachine(FakeMachine::Files{{"proc/vmstat", kVmstat}}).root()),
            12U);
  EXPECT_EQ(kills_on_machine(FakeMachine({}).root()), 0U);
}

TEST(OomKills, OfAGroupOfVersionTwoAreReadFromItsEvents) {
  const FakeMachine machine(
      {{"proc/self/cgroup", "0::/jobs/one\n"},
       {"sys/fs/cgroup/jobs/one/memory.events", "low 0\nmax 9\noom 3\noom_kill 2\n"}});

  EXPECT_EQ(kills_in_group(machine.root()), 2U);
}

TEST(OomKills, OfAGroupOfVersionOneAreReadFromOomControl) {
  const FakeMachine machine({{"proc/self/cgroup", "5:cpu,memory:/a\n0::/\n"},
                             {"sys/fs/cgroup/memory/a/memory.oom_control",
                              "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n"}});

  EXPECT_EQ(kills_in_group(machine.root()), 4U);
}

TEST(OomKills, OfAContainerAreReadAtTheTopOfTheMount) {
  const FakeMachine machine(
      {{"proc/self/cgroup", "9:memory:/docker/0123\n"},
       {"sys/fs/cgroup/memory/memory.oom_control", "under_oom 0\noom_kill 1\n"},
       {"proc/vmstat", kVmstat}});

  EXPECT_EQ(kills_in_container(machine.root()), 1U);
}

TEST(OomKills, WithoutAGroupTheMachineCounts) {
  const FakeMachine machine({{"proc/self/cgroup", "0::/\n"}, {"proc/vmstat", kVmstat}});

  EXPECT_EQ(kills_in_group(machine.root()), std::nullopt);
  EXPECT_EQ(kills_in_container(machine.root()), 12U);
}

}  // namespace

}  // namespace muster::engine
