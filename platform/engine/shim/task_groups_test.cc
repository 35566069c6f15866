#include "engine/shim/task_groups.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/test_folder.h"
#include "engine/fake_machine.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

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

TEST_F(TaskGroupsTest, TheBoundOfALimitOfAParentGroupIsUnknown) {
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
