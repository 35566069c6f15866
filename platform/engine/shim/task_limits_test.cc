#include "engine/shim/task_limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "base/test_folder.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

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

}  // namespace
}  // namespace muster::engine
