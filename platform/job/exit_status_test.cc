#include "job/exit_status.h"

#include <gtest/gtest.h>

#include <csignal>

namespace muster::job {
namespace {

struct ExitStatusCase {
  ExitStatus status;
  std::string words;
  int shell_code;
};

TEST(ExitStatus, IsExplainedInWordsAndHasTheExitCodeOfAShell) {
  const ExitStatusCase cases[] = {
      {{}, "exited with code 0", 0},
      {{.code = 3}, "exited with code 3", 3},
      {{.code = 127}, "exited with code 127: the command was not found", 127},
      {{.code = 126}, "exited with code 126: the command was found but is not executable", 126},
      {{.code = 127, .error = "'train' was not found"},
       "exited with code 127: the command was not found ('train' was not found)",
       127},
      {{.code = 126,
        .error = "cannot enter the working folder '/nope'",
        .advice = "choose another"},
       "exited with code 126: cannot enter the working folder '/nope'",
       126},
      {{.code = 0, .lost_log_bytes = 7}, "exited with code 0", 0},
      {{.code = 132}, "exited with code 132", 132},
      {{.code = 137}, "exited with code 137: as after signal 9 (SIGKILL)", 137},
      {{.signal = SIGSEGV}, "was killed by signal 11 (SIGSEGV)", 139},
      {{.signal = SIGKILL, .out_of_memory = true},
       "was killed by signal 9 (SIGKILL): the kernel's out-of-memory killer ended a process on "
       "this machine",
       137},
      {{.signal = SIGKILL,
        .out_of_memory = true,
        .limit = LimitReached{Limit::kMemory, 100 << 20, 99 << 20}},
       "was killed: out of memory (its limit is 100Mi, its peak was 99Mi)",
       137},
      {{.signal = SIGKILL, .out_of_memory = true, .limit = LimitReached{Limit::kMemory}},
       "was killed by signal 9 (SIGKILL): the kernel's out-of-memory killer ended a process on "
       "this machine",
       137},
      {{.code = 1, .limit = LimitReached{Limit::kProcesses, 40}},
       "exited with code 1: too many processes and threads (its limit is 40)",
       1},
      {{.code = 137, .limit = LimitReached{Limit::kScratch, 20 << 20, 25 << 20}},
       "was killed: too much scratch space (its limit is 20Mi, its peak was 25Mi)",
       137},
      {{.signal = SIGXFSZ, .limit = LimitReached{Limit::kFileSize}},
       "was killed by signal 25 (SIGXFSZ): a file became too large",
       153},
      {{.signal = SIGTERM, .stopped = true}, "was stopped (SIGTERM)", 143},
      {{.code = 3, .stopped = true}, "exited with code 3 after a request to stop", 3},
      {{.lost = true},
       "was lost: its supervisor process was killed, or the machine restarted",
       137},
      {{.lost = true, .error = "its container was removed"},
       "was lost: its container was removed",
       137},
  };
  for (const ExitStatusCase& expected : cases) {
    EXPECT_EQ(explain(expected.status), expected.words);
    EXPECT_EQ(expected.status.shell_code(), expected.shell_code) << expected.words;
  }
}

TEST(ExitStatus, SucceedsOnlyAfterACleanEnd) {
  EXPECT_TRUE(ExitStatus{}.succeeded());
  EXPECT_FALSE(ExitStatus{.code = 1}.succeeded());
  EXPECT_FALSE(ExitStatus{.signal = SIGKILL}.succeeded());
  EXPECT_FALSE(ExitStatus{.lost = true}.succeeded());
}

TEST(ExitStatus, ReportsLostOutput) {
  EXPECT_EQ(lost_output({}), "");
  EXPECT_EQ(lost_output({.lost_log_bytes = 7}),
            "7 bytes of its output are lost: the disk of its log was full");
}

TEST(Advice, IsGivenForEndsWithAKnownRemedy) {
  EXPECT_NE(advice_for({.code = 126}).find("chmod +x"), std::string::npos);
  EXPECT_NE(advice_for({.code = 126, .error = "cannot start '/x': Exec format error"})
                .find("another type of CPU"),
            std::string::npos);
  EXPECT_NE(advice_for({.code = 127}).find("full path"), std::string::npos);
  EXPECT_NE(advice_for({.signal = SIGKILL, .out_of_memory = true}).find("memory"),
            std::string::npos);
  EXPECT_NE(
      advice_for({.code = 1, .limit = LimitReached{Limit::kProcesses}}).find("tasks.processes"),
      std::string::npos);
  EXPECT_EQ(advice_for({.code = 126, .error = "no folder", .advice = "choose another"}),
            "choose another");
  EXPECT_EQ(advice_for({.code = 3}), "");
  EXPECT_EQ(advice_for({.signal = SIGKILL, .error = "the program that held it was killed"}), "")
      << "a guess beside the cause";
  const struct {
    int signal;
    std::string words;
  } signals[] = {{SIGKILL, "dmesg"},
                 {SIGSEGV, "debugger"},
                 {SIGFPE, "debugger"},
                 {SIGBUS, "/dev/shm"},
                 {SIGABRT, "assertion"}};
  for (const auto& known : signals) {
    EXPECT_NE(advice_for({.signal = known.signal}).find(known.words), std::string::npos);
    EXPECT_EQ(advice_for({.code = 128 + known.signal}), advice_for({.signal = known.signal}));
    EXPECT_EQ(advice_for({.signal = known.signal, .stopped = true}), "") << known.signal;
  }
}

}  // namespace
}  // namespace muster::job
