#include "engine/shim/limit_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/test_folder.h"
#include "base/unique_fd.h"

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

  std::optional<job::LimitReached> look(const TaskLimits& limits) {
    LimitWatch watch(limits, 1, fs::path(proc_));
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

/// A task whose processes 11 and 12 are in a sandbox, on a machine where 20 and 30 run, too.
class TaskProcessesTest : public LimitWatchTest {
 protected:
  TaskProcessesTest() {
    for (const int pid : {20, 30}) add(pid, "", 0, 0, 1);
    for (const auto& [process, space] :
         {std::pair("self", 1), std::pair("10", 1), std::pair("11", 2), std::pair("12", 2),
          std::pair("20", 1), std::pair("30", 1)}) {
      put_in(process, space);
    }
    set_newest(30);
  }

  void put_in(const std::string& process, int space) const {
    fs::create_directories(proc_ / process / "ns");
    fs::create_symlink("pid:[" + std::to_string(space) + "]", proc_ / process / "ns/pid");
  }

  void set_newest(int pid) const {
    fs::remove(proc_ / "loadavg");
    EXPECT_TRUE(base::write_new_file(proc_ / "loadavg",
                                     "0.20 0.18 0.12 1/80 " + std::to_string(pid) + "\n"));
  }

  void start_program(int pid, int space) {
    add(pid, "", 0, 0, 1);
    put_in(std::to_string(pid), space);
    set_newest(pid);
  }

  std::set<pid_t> found() {
    std::set<pid_t> pids;
    for (const auto& process : processes_.find()) pids.insert(process.pid);
    return pids;
  }

  TaskProcesses processes_{1, fs::path(proc_)};
};

TEST_F(TaskProcessesTest, FindsProgramsThatEnterTheSandboxLater) {
  ASSERT_EQ(found(), (std::set<pid_t>{10, 11, 12}));

  start_program(40, 1);
  start_program(41, 2);

  for (int i = 0; i < 50; ++i) ASSERT_EQ(found(), (std::set<pid_t>{10, 11, 12, 41})) << i;
  fs::remove_all(proc_ / "41");
  EXPECT_EQ(found(), (std::set<pid_t>{10, 11, 12}));
}

TEST_F(TaskProcessesTest, FindsAProcessThatAppearsAfterItsNumber) {
  found();
  set_newest(41);
  found();
  start_program(45, 1);
  found();

  start_program(41, 2);
  set_newest(45);

  EXPECT_EQ(found(), (std::set<pid_t>{10, 11, 12, 41}));
}

TEST_F(TaskProcessesTest, FindsProgramsAfterTheNumbersBeganAgain) {
  start_program(32'000, 2);
  ASSERT_EQ(found(), (std::set<pid_t>{10, 11, 12, 32'000}));

  fs::remove_all(proc_ / "30");
  start_program(25, 2);

  EXPECT_EQ(found(), (std::set<pid_t>{10, 11, 12, 25, 32'000}));
}

TEST_F(TaskProcessesTest, ThreadsOfAProgramAreNoProcesses) {
  found();
  start_program(41, 2);
  start_program(42, 2);
  fs::remove(proc_ / "42/status");
  ASSERT_TRUE(base::write_new_file(proc_ / "42/status", "Name:\tx\nTgid:\t41\nThreads:\t2\n"));

  EXPECT_EQ(found(), (std::set<pid_t>{10, 11, 12, 41}));
}

// A list of the machine would show process 20 in the sandbox, where it was not when it was new.
TEST_F(TaskProcessesTest, DoesNotListTheMachineAtEachLook) {
  found();
  fs::remove_all(proc_ / "20/ns");
  put_in("20", 2);

  EXPECT_EQ(found(), (std::set<pid_t>{10, 11, 12}));
}

TEST_F(LimitWatchTest, IgnoresLimitsThatTheContainerEnforces) {
  LimitWatch watch({.memory_bytes = 1, .processes = 1, .is_held_by_container = true}, 1,
                   fs::path(proc_));

  EXPECT_EQ(watch.milliseconds_to_wait(), -1);
}

TEST_F(LimitWatchTest, IgnoresLimitsThatControlGroupsEnforce) {
  TaskLimits limits{.memory_bytes = 1, .processes = 1};
  limits.groups = {{.folder = "/a", .home = "/", .settings = {{"memory.max", "1"}}},
                   {.folder = "/b", .home = "/", .settings = {{"pids.max", "1"}}}};
  LimitWatch watch(limits, 1, fs::path(proc_));

  EXPECT_EQ(watch.look(), std::nullopt);
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

TEST_F(LimitWatchTest, CountsFilesWhosePathsAreTooLongForTheKernel) {
  const base::TestFolder scratch;
  const std::string name(200, 'n');
  base::UniqueFd folder(::open(scratch.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int depth = 0; depth < 25; ++depth) {
    ASSERT_EQ(::mkdirat(folder.get(), name.c_str(), 0700), 0);
    folder =
        base::UniqueFd(::openat(folder.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  const base::UniqueFd file(::openat(folder.get(), "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(base::write_all(file.get(), std::string(4'000'000, 'x')));

  const auto excess = look({.scratch_bytes = 3'000'000, .scratch = {scratch.path().string()}});

  ASSERT_TRUE(excess);
  EXPECT_GE(excess->peak, 4'000'000);
}

TEST_F(LimitWatchTest, FoldersNestedTooDeepExceedTheLimit) {
  const base::TestFolder scratch;
  const TaskLimits limits{.scratch_bytes = 1 << 30, .scratch = {scratch.path().string()}};
  fs::path folder = scratch.path();
  for (int depth = 0; depth < 256; ++depth) folder /= "d";
  fs::create_directories(folder);
  LimitWatch shallow(limits, 1, fs::path(proc_));
  EXPECT_EQ(shallow.look(), std::nullopt);
  EXPECT_FALSE(shallow.is_scratch_too_deep());
  fs::create_directory(folder / "d");

  LimitWatch deep(limits, 1, fs::path(proc_));
  EXPECT_EQ(deep.look(), (job::LimitReached{job::Limit::kScratch, 1 << 30, 0}));
  EXPECT_TRUE(deep.is_scratch_too_deep());
}

TEST_F(LimitWatchTest, CountsNoMountsInScratchFolders) {
  const base::TestFolder scratch;
  fs::create_directory(scratch / "mount");
  const TaskLimits limits{.scratch_bytes = 1'000'000, .scratch = {scratch.path().string()}};
  constexpr int kMayNotMount = 77;
  const pid_t child = ::fork();
  if (child == 0) {
    const fs::path file = scratch / "mount/file";
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", file.parent_path().c_str(), "tmpfs", 0, nullptr) != 0) {
      ::_exit(kMayNotMount);
    }
    const bool is_written{base::write_new_file(file, std::string(4'000'000, 'x'))};
    ::_exit(is_written && !look(limits) ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kMayNotMount) GTEST_SKIP() << "may not mount";
  EXPECT_EQ(status, 0);
}

/// While it lives, this thread has no right to pass over the modes of files, whatever its account.
class WithoutRightsOverFiles {
 public:
  WithoutRightsOverFiles() {
    EXPECT_EQ(::syscall(SYS_capget, &header_, before_.data()), 0);
    auto fewer = before_;
    fewer[0].effective &= ~(1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH);
    EXPECT_EQ(::syscall(SYS_capset, &header_, fewer.data()), 0);
  }
  ~WithoutRightsOverFiles() { EXPECT_EQ(::syscall(SYS_capset, &header_, before_.data()), 0); }
  WithoutRightsOverFiles(const WithoutRightsOverFiles&) = delete;
  WithoutRightsOverFiles& operator=(const WithoutRightsOverFiles&) = delete;

 private:
  __user_cap_header_struct header_{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> before_{};
};

TEST_F(LimitWatchTest, CountsOpenFilesInFoldersThatItMayNotRead) {
  const base::TestFolder scratch;
  const base::TestFolder elsewhere;
  fs::create_directory(scratch / "closed");
  std::vector<base::UniqueFd> files;
  for (const fs::path& path : {scratch / "closed/file", elsewhere / "file"}) {
    files.emplace_back(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_TRUE(base::write_all(files.back().get(), std::string(4'000'000, 'x')));
  }
  // Process 12 is this process.
  fs::create_directory_symlink("/proc/self/fd", proc_ / "12/fd");
  fs::create_directory_symlink("/proc/self/root", proc_ / "12/root");
  fs::permissions(scratch / "closed", fs::perms::none);
  const std::string folder = scratch.path().string();
  {
    const WithoutRightsOverFiles lacking;
    EXPECT_NE(look({.scratch_bytes = 3'000'000, .scratch = {folder}}), std::nullopt);
    EXPECT_EQ(look({.scratch_bytes = 6'000'000, .scratch = {folder}}), std::nullopt);
  }
  fs::permissions(scratch / "closed", fs::perms::owner_all);
}

TEST(LimitWatch, WithoutLimitsMeasuresNothing) {
  LimitWatch watch;
  EXPECT_EQ(watch.milliseconds_to_wait(), -1);
  EXPECT_EQ(watch.look(), std::nullopt);
}

}  // namespace

}  // namespace muster::engine
