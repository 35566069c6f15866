#include "engine/shim/process_usage.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kKiB = 1024;

TEST(ParseStat, CountsFieldsAfterANameWithBlanksAndBrackets) {
  const auto read = parse_stat(
      "42 (a ) b (c) R 7 42 42 34816 42 4194304 100 200 0 0 11 22 33 44 20 0 5 0 12345 1000000 321 "
      "18446744073709551615 1 1\n");

  ASSERT_TRUE(read);
  EXPECT_EQ(read->first, (ProcessKey{.pid = 42, .start_ticks = 12345}));
  EXPECT_EQ(read->second, (ProcessState{.parent = 7,
                                        .own_ticks = 33,
                                        .system_ticks = 22,
                                        .reaped_ticks = 77,
                                        .threads = 5,
                                        .resident_pages = 321,
                                        .terminal = 34816}));
}

TEST(ParseStat, RejectsTruncatedText) {
  for (const char* text : {"", "42", "42 (a", "42 (a)", "x (a) R 7", "42 (a) R 7 42 42 0 -1 41"}) {
    EXPECT_FALSE(parse_stat(text)) << text;
  }
}

struct Process {
  pid_t pid;
  uint64_t own;
  uint64_t reaped = 0;
  uint64_t start = 1;
};

Processes processes(const std::vector<Process>& all) {
  Processes found;
  for (const Process& each : all) {
    found[{each.pid, each.start}] = {.own_ticks = each.own, .reaped_ticks = each.reaped};
  }
  return found;
}

TEST(TicksBetween, CountsLivingAndReapedProcesses) {
  const struct {
    const char* what;
    Processes before;
    Processes now;
    uint64_t ticks;
  } rows[] = {
      {"nothing", {}, {}, 0},
      {"the first look counts all time", {}, processes({{1, 5, 7}, {2, 3}}), 15},
      {"time used between the looks", processes({{1, 5}}), processes({{1, 9}}), 4},
      {"a new process counts with all its time", processes({{1, 5}}), processes({{1, 5}, {2, 6}}),
       6},
      {"a process that came and went counts through its parent", processes({{1, 5, 0}}),
       processes({{1, 5, 8}}), 8},
      {"an ended process counts without the time counted before", processes({{1, 5, 0}, {2, 30}}),
       processes({{1, 5, 34}}), 4},
      {"an ended process counts with the children that it had reaped",
       processes({{1, 0, 0}, {2, 10, 20}, {3, 5}}), processes({{1, 0, 40}}), 5},
      {"a process that was not reaped subtracts nothing from the others",
       processes({{1, 5}, {2, 1000}}), processes({{1, 9}}), 4},
      {"a reused pid is a new process", processes({{1, 0}, {2, 50, 0, 1}}),
       processes({{1, 0, 52}, {2, 3, 0, 9}}), 5},
      {"counters that decrease", processes({{1, 50, 50}}), processes({{1, 40, 40}}), 0},
      {"all processes are gone", processes({{1, 50, 50}}), {}, 0},
  };
  for (const auto& row : rows) EXPECT_EQ(ticks_between(row.before, row.now), row.ticks) << row.what;
}

/// A folder that replaces /proc.
class FakeProc : public testing::Test {
 protected:
  FakeProc() {
    std::string pattern = testing::TempDir() + "procXXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~FakeProc() override { fs::remove_all(folder_); }

  void put(const fs::path& file, const std::string& text) const {
    fs::create_directories((folder_ / file).parent_path());
    std::ofstream(folder_ / file) << text;
  }

  /// `children`: a list for each thread of the process; the first thread has the pid as its number.
  void add(pid_t pid, pid_t parent, uint64_t ticks, uint64_t pages,
           const std::vector<std::string>& children = {""}) const {
    const std::string process = std::to_string(pid);
    put(process + "/stat", process + " (x) R " + std::to_string(parent) + " 0 0 0 -1 0 0 0 0 0 " +
                               std::to_string(ticks) + " 0 0 0 20 0 " +
                               std::to_string(children.size()) + " 0 777 0 " +
                               std::to_string(pages) + " 0\n");
    for (size_t i = 0; i < children.size(); ++i) {
      put(process + "/task/" + std::to_string(pid + static_cast<pid_t>(i)) + "/children",
          children[i]);
    }
  }

  void set_pss(pid_t pid, int64_t kib) const {
    put(std::to_string(pid) + "/smaps_rollup",
        "00400000-7fff0000 ---p 00000000 00:00 0    [rollup]\nRss:         9999 kB\nPss:      " +
            std::to_string(kib) + " kB\nPss_Dirty:   1 kB\n");
  }

  fs::path folder_;
};

TEST_F(FakeProc, TheTreeHasTheChildrenOfAllThreadsWithoutTheRoot) {
  add(10, 1, 1000, 0, {"20 30 "});
  add(20, 10, 1, 0, {"40 ", "", "50 60"});
  for (const pid_t pid : {40, 50, 60}) add(pid, 20, 1, 0);
  add(30, 10, 500, 0, {"70 "});
  add(70, 30, 500, 0);
  add(80, 1, 500, 0);

  ProcessUsage usage(10, 30, folder_);

  EXPECT_EQ(usage.look().processes, (std::vector<pid_t>{20, 40, 50, 60}));
}

TEST_F(FakeProc, WithoutListsOfChildrenTheTreeIsFoundByParents) {
  add(10, 1, 1000, 0);
  add(20, 10, 1, 0);
  add(40, 20, 1, 0);
  add(80, 1, 500, 0);
  for (const char* process : {"10", "20", "40", "80"}) fs::remove_all(folder_ / process / "task");

  ProcessUsage usage(10, 0, folder_);

  EXPECT_EQ(usage.look().processes, (std::vector<pid_t>{20, 40}));
}

TEST_F(FakeProc, ListedProcessesMayHaveEnded) {
  add(10, 1, 0, 0, {"20 21 "});
  add(20, 10, 7, 0);

  ProcessUsage usage(10, 0, folder_);

  EXPECT_EQ(usage.look().processes, std::vector<pid_t>{20});
}

TEST_F(FakeProc, MemoryIsTheSumOfProportionalShares) {
  add(10, 1, 0, 0, {"20 30"});
  add(20, 10, 0, 1000);
  add(30, 10, 0, 1000);
  set_pss(20, 300);
  set_pss(30, 200);

  ProcessUsage usage(10, 0, folder_);

  EXPECT_EQ(usage.look().memory_bytes, 500 * kKiB);
}

TEST_F(FakeProc, WithoutProportionalSharesMemoryIsAnonymousResidentMemory) {
  add(10, 1, 0, 0, {"20"});
  add(20, 10, 0, 1000);
  put("20/statm", "5000 1000 400 10 0 20 0\n");

  ProcessUsage usage(10, 0, folder_);

  EXPECT_EQ(usage.look().memory_bytes, 600 * ::sysconf(_SC_PAGESIZE));
}

TEST_F(FakeProc, MemoryIsReadAgainWhenAProcessGrowsOrStarts) {
  add(10, 1, 0, 0, {"20 30"});
  add(20, 10, 0, 1000);
  add(30, 10, 0, 1000);
  set_pss(20, 300);
  set_pss(30, 200);
  ProcessUsage usage(10, 0, folder_);
  ASSERT_EQ(usage.look().memory_bytes, 500 * kKiB);

  set_pss(20, 310);
  set_pss(30, 999);
  add(30, 10, 0, 1010);
  EXPECT_EQ(usage.look().memory_bytes, 500 * kKiB) << "neither has changed noticeably";

  add(30, 10, 0, 1100);
  EXPECT_EQ(usage.look().memory_bytes, (300 + 999) * kKiB);

  add(10, 1, 0, 0, {"20 30 40"});
  add(40, 10, 0, 1);
  set_pss(40, 1);
  EXPECT_EQ(usage.look().memory_bytes, (310 + 999 + 1) * kKiB);
}

TEST_F(FakeProc, AnEndedTaskUsesNothing) {
  ProcessUsage usage(10, 0, folder_);

  const auto look = usage.look();

  EXPECT_EQ(look.cpu.count(), 0);
  EXPECT_EQ(look.memory_bytes, 0);
  EXPECT_TRUE(look.processes.empty());
}

TEST(ProcessUsageOfThisMachine, MeasuresAChildAndItsEnd) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[1]);
    char end = 0;
    ::_exit(::read(ends[0], &end, 1) == 0 ? 0 : 1);
  }
  ::close(ends[0]);
  ProcessUsage usage(::getpid(), 0);

  const auto look = usage.look();
  EXPECT_NE(std::find(look.processes.begin(), look.processes.end(), child), look.processes.end());
  EXPECT_GT(look.memory_bytes, 0);

  ::close(ends[1]);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(usage.look().processes.empty());
}

}  // namespace
}  // namespace muster::engine
