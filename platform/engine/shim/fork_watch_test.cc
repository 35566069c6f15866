#include "engine/shim/fork_watch.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/test_folder.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds kNoPause{0};
constexpr int kLooks = 12;

/// The state of a task's thread at a look of the watch, and the system call that it leaves when it is
/// stopped.
struct FakeThread {
  char state = 'R';
  long call = -1;  ///< -1: none, it computes
  int64_t nanoseconds = 50'000'000;
};

constexpr FakeThread kForks{.state = 'T', .call = SYS_clone};
constexpr FakeThread kComputes{.state = 'T'};
constexpr FakeThread kReads{.state = 'T', .call = SYS_read};
constexpr FakeThread kStarts{.state = 'T', .call = SYS_clone, .nanoseconds = 40'000};

/// A /proc with a task of the processes 10, 11, ... below process 1.
class ForkWatchTest : public testing::Test {
 protected:
  /// Each process has one thread.
  void set(const std::vector<FakeThread>& threads) {
    std::string children;
    for (size_t i = 0; i < threads.size(); ++i) {
      const std::string pid = std::to_string(10 + i);
      children += pid + " ";
      set_thread(pid, pid, threads[i]);
      write(fs::path(pid) / "status", "Name:\tx\nThreads:\t1\n");
      write(fs::path(pid) / "task" / pid / "children", "");
    }
    write("1/task/1/children", children);
  }

  void set_thread(const std::string& pid, const std::string& thread, const FakeThread& does) {
    const fs::path folder = fs::path(pid) / "task" / thread;
    write(folder / "stat", thread + " (a) b) " + does.state + " 1 1 1 0\n");
    write(folder / "syscall", std::to_string(does.call) +
                                  (does.call < 0 ? "" : " 0x1 0x2 0x0 0x0 0x0 0x0") +
                                  " 0x7ffd 0x7f01\n");
    write(folder / "schedstat", std::to_string(does.nanoseconds) + " 7 3\n");
  }

  void write(const fs::path& name, const std::string& text) {
    fs::create_directories((proc_ / name).parent_path());
    EXPECT_TRUE(base::write_file(proc_ / name, text));
  }

  /// The report of a task that asks for a CPU at each look, and does `threads` when it is stopped.
  /// `has`: how many processes and threads it has.
  std::optional<job::LimitReached> report(const TaskLimits& limits, int64_t has,
                                          const std::vector<FakeThread>& threads) {
    ForkWatch watch(limits, kNoPause);
    TaskProcesses processes(1, fs::path(proc_));
    std::vector<FakeThread> running = threads;
    for (FakeThread& thread : running) thread.state = 'R';
    for (int looks = 0; looks < kLooks; ++looks) {
      // It runs, is stopped because it is suspect, and is stopped still if it is a fork bomb.
      set(looks % 3 == 1 ? threads : running);
      if (const auto reached = watch.look(processes, has)) return reached;
    }
    return std::nullopt;
  }

  const base::TestFolder proc_;
};

constexpr int64_t kAll = 8;
const TaskLimits kLimits{.processes = kAll, .user_processes = kAll};
const job::LimitReached kReached{job::Limit::kProcesses, kAll, kAll};

TEST_F(ForkWatchTest, EndsATaskThatHasAllItsProcessesAndForks) {
  EXPECT_EQ(report(kLimits, kAll, std::vector(8, kForks)), kReached);
  EXPECT_EQ(report(kLimits, kAll,
                   {kForks, kForks, kForks, kForks, kForks, kComputes, kComputes, kComputes}),
            kReached)
      << "most of them";
}

/// Threads of one process.
class ForkWatchOfThreads : public ForkWatchTest {
 protected:
  std::optional<job::LimitReached> report_of_one(const std::vector<FakeThread>& threads) {
    ForkWatch watch(kLimits, kNoPause);
    TaskProcesses processes(1, fs::path(proc_));
    for (int looks = 0; looks < kLooks; ++looks) {
      set({looks % 3 == 1 ? threads.front() : FakeThread{}});
      for (size_t i = 1; i < threads.size(); ++i) {
        set_thread("10", std::to_string(10 + i), looks % 3 == 1 ? threads[i] : FakeThread{});
      }
      if (const auto reached = watch.look(processes, kAll)) return reached;
    }
    return std::nullopt;
  }
};

constexpr FakeThread kWaitsForLock{.state = 'T', .call = SYS_futex};
constexpr FakeThread kGetsStack{.state = 'T', .call = SYS_mmap};

TEST_F(ForkWatchOfThreads, EndsAProgramWhoseThreadsAskForThreadsAndWaitForOneAnother) {
  EXPECT_EQ(report_of_one({kForks, kForks, kWaitsForLock, kWaitsForLock, kWaitsForLock, kGetsStack,
                           kWaitsForLock, kComputes}),
            kReached);
}

TEST_F(ForkWatchOfThreads, LeavesAPoolOfThreads) {
  EXPECT_EQ(report_of_one({kForks, kWaitsForLock, kWaitsForLock, kWaitsForLock, kWaitsForLock,
                           kWaitsForLock, kWaitsForLock, kWaitsForLock}),
            std::nullopt)
      << "one thread starts others";
  EXPECT_EQ(report_of_one({kForks, kForks, kWaitsForLock, kWaitsForLock, kWaitsForLock,
                           kWaitsForLock, kComputes, kReads}),
            std::nullopt)
      << "as many threads work as start others";
}

TEST_F(ForkWatchTest, ProcessesDoNotWaitForTheLockOfThreads) {
  EXPECT_EQ(report(kLimits, kAll,
                   {kForks, kForks, kWaitsForLock, kGetsStack, kGetsStack, kGetsStack,
                    kWaitsForLock, kComputes}),
            std::nullopt)
      << "what starts commands does that";
}

TEST_F(ForkWatchTest, LeavesATaskThatMayHaveMoreProcesses) {
  EXPECT_EQ(report(kLimits, 5, std::vector(5, kForks)), std::nullopt);
}

TEST_F(ForkWatchTest, LeavesWorkWithAllItsProcesses) {
  EXPECT_EQ(report(kLimits, kAll, std::vector(8, kComputes)), std::nullopt);
  EXPECT_EQ(report(kLimits, kAll, std::vector(8, kReads)), std::nullopt) << "it copies files";
  EXPECT_EQ(
      report(kLimits, kAll, {kForks, kStarts, kStarts, kStarts, kStarts, kReads, kReads, kReads}),
      std::nullopt)
      << "a parallel build: one process starts the others, which wait for a CPU";
}

TEST_F(ForkWatchTest, DoesNotStopATaskThatWaits) {
  ForkWatch watch(kLimits, ForkWatch::kPause);
  TaskProcesses processes(1, fs::path(proc_));
  set(std::vector(8, FakeThread{.state = 'S', .call = SYS_clone}));

  EXPECT_EQ(watch.look(processes, kAll), std::nullopt);
  EXPECT_EQ(watch.pause(), ForkWatch::kPause) << "not stopped";
}

TEST_F(ForkWatchTest, StopsASuspectForAMomentAndTrustsItForLongerEachTime) {
  ForkWatch watch(kLimits, ForkWatch::kPause);
  TaskProcesses processes(1, fs::path(proc_));
  set(std::vector(8, FakeThread{}));
  EXPECT_EQ(watch.look(processes, kAll), std::nullopt);
  EXPECT_LT(watch.pause(), ForkWatch::kPause / 10) << "is examined";
  set(std::vector(8, kComputes));

  EXPECT_EQ(watch.look(processes, kAll), std::nullopt);

  EXPECT_EQ(watch.pause(), ForkWatch::kPause) << "goes on";
  set(std::vector(8, FakeThread{}));
  EXPECT_EQ(watch.look(processes, kAll), std::nullopt);
  EXPECT_EQ(watch.pause(), ForkWatch::kPause) << "is trusted now";
}

TEST_F(ForkWatchTest, WaitsUntilAtLeastHalfOfTheThreadsHaveStopped) {
  ForkWatch watch(kLimits, ForkWatch::kPause);
  TaskProcesses processes(1, fs::path(proc_));
  const FakeThread still_runs;
  set(std::vector(8, still_runs));
  EXPECT_EQ(watch.look(processes, kAll), std::nullopt);
  set({kComputes, still_runs, still_runs, still_runs, still_runs, still_runs, still_runs,
       still_runs});

  EXPECT_EQ(watch.look(processes, kAll), std::nullopt);

  EXPECT_LT(watch.pause(), ForkWatch::kPause / 10) << "is examined still";
  set(std::vector(8, kForks));
  EXPECT_EQ(watch.look(processes, kAll), std::nullopt);
  EXPECT_GT(watch.pause(), ForkWatch::kPause) << "a fork bomb, which stays stopped for a second";
}

TEST_F(ForkWatchTest, AStoppedTaskThatCannotBeExaminedContinues) {
  ForkWatch watch(kLimits, ForkWatch::kPause);
  TaskProcesses processes(1, fs::path(proc_));
  set(std::vector(8, FakeThread{}));
  EXPECT_EQ(watch.look(processes, kAll), std::nullopt);
  EXPECT_LT(watch.pause(), ForkWatch::kPause / 10);

  for (int looks = 0; looks < 50 && watch.pause() < ForkWatch::kPause; ++looks) {
    EXPECT_EQ(watch.look(processes, kAll), std::nullopt);
  }

  EXPECT_EQ(watch.pause(), ForkWatch::kPause);
}

TEST_F(ForkWatchTest, ATaskIsNotEndedIfTheKernelReportsNoSystemCalls) {
  set(std::vector(8, kForks));
  for (int pid = 10; pid < 18; ++pid) {
    const std::string name = std::to_string(pid);
    fs::remove(proc_ / name / "task" / name / "syscall");
  }

  EXPECT_EQ(thread_states_of(fs::path(proc_), {10, 11, 12, 13, 14, 15, 16, 17}),
            (ThreadStates{.alive = 8, .runnable = 0, .stopped = 8, .forking = 0}));
}

TEST_F(ForkWatchTest, CountsThreadsOfOneProcess) {
  set({kForks});
  set_thread("10", "11", kForks);
  set_thread("10", "12", {.state = 'R'});
  set_thread("10", "13", {.state = 'D'});
  set_thread("10", "14", {.state = 'Z'});
  set_thread("10", "15", {.state = 'S'});

  EXPECT_EQ(thread_states_of(fs::path(proc_), {10, 99}),
            (ThreadStates{.alive = 5, .runnable = 2, .stopped = 2, .forking = 2}));
}

/// A folder that imitates a control group with these files.
struct GroupOf {
  GroupOf(TaskLimits others, const std::string& setting,
          const std::map<std::string, std::string>& files)
      : limits(std::move(others)) {
    limits.groups = {{.folder = folder.path().string(), .home = "/", .settings = {{setting, "1"}}}};
    for (const auto& [name, text] : files) {
      EXPECT_TRUE(base::write_new_file(folder / name, text));
    }
  }

  const base::TestFolder folder;
  TaskLimits limits;
};

TEST_F(ForkWatchTest, CountsTheProcessesOfTheControlGroup) {
  const GroupOf group(
      kLimits, "pids.max",
      {{"cgroup.procs", "10\n11\n12\n13\n14\n15\n16\n17\n"}, {"pids.current", "9\n"}});
  EXPECT_EQ(report(group.limits, 0, std::vector(8, kForks)), kReached);
  ASSERT_TRUE(base::write_file(group.folder / "pids.current", "6\n"));
  EXPECT_EQ(report(group.limits, 0, std::vector(8, kForks)), std::nullopt);
}

/// What a watch reports while a number grows by so much between two looks. `text`: before it.
std::optional<job::LimitReached> report_while_growing(const GroupOf& group, const char* file,
                                                      const std::string& text, int growth) {
  ForkWatch watch(group.limits, kNoPause);
  TaskProcesses processes(1, "/nowhere");
  for (int looks = 1; looks <= 5; ++looks) {
    const std::string count = std::to_string(looks * growth);
    EXPECT_TRUE(base::write_file(group.folder / file, text + count + "\n"));
    if (const auto reached = watch.look(processes, 0)) return reached;
  }
  return std::nullopt;
}

TEST(ForkWatchOfGroups, EndsATaskThatIsRefusedProcessesWithoutAPause) {
  const GroupOf group({.processes = 40}, "pids.max", {{"pids.current", "40\n"}});
  EXPECT_EQ(report_while_growing(group, "pids.events", "max ", 100),
            (job::LimitReached{job::Limit::kProcesses, 40, 40}));
  EXPECT_EQ(report_while_growing(group, "pids.events", "max ", 10), std::nullopt)
      << "it waits before it tries again";
}

TEST(ForkWatchOfGroups, EndsATaskWhoseProcessesAreKilledAllTheTime) {
  const GroupOf group({.memory_bytes = 4096}, "memory.max", {{"memory.peak", "4096\n"}});
  EXPECT_EQ(report_while_growing(group, "memory.events", "oom_kill ", 20),
            (job::LimitReached{job::Limit::kMemory, 4096, 4096}));
  EXPECT_EQ(report_while_growing(group, "memory.events", "oom_kill ", 5), std::nullopt);
}

TEST(ForkWatchOfGroups, IsNotNeededWithoutLimits) {
  EXPECT_FALSE(ForkWatch().is_needed());
  EXPECT_FALSE(ForkWatch({.processes = 40}).is_needed()) << "LimitWatch measures it";
  EXPECT_TRUE(ForkWatch(kLimits).is_needed());
}

}  // namespace

}  // namespace muster::engine
