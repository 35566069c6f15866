#include "notify/command_hook.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <filesystem>
#include <sstream>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/test_folder.h"

namespace muster::notify {
namespace {

using job::Happening;

class Hook : public testing::Test {
 protected:
  explicit Hook(CommandHook::Limits limits = {.timeout = std::chrono::seconds(30),
                                              .pause = std::chrono::milliseconds(1)})
      : hook_(loop_, limits) {}

  /// A shell's script, with the folder as its working directory.
  void runs(const std::string& script) {
    hook_.set_command({"/bin/sh", "-c", "cd " + folder_.path().string() + "; " + script});
  }
  void add(const std::string& job) {
    hook_.add({.happening = Happening::kFailed,
               .project = "lab",
               .job = job,
               .payload = "{\"job\":\"" + job + "\"}"});
  }
  /// Runs the loop until each event was reported or abandoned.
  void finish() {
    while (!hook_.is_idle()) {
      loop_.post([this] { loop_.stop(); });
      loop_.run();
    }
  }
  std::string text_of(const std::string& name) const {
    const auto text = base::read_file(folder_.path() / name);
    return text ? *text : "";
  }

  base::TestFolder folder_;
  base::EventLoop loop_;
  CommandHook hook_;
};

TEST_F(Hook, HasThePayloadOnItsInputAndAFewWordsInItsEnvironment) {
  ::setenv("SECRET_OF_THE_SERVER", "x", 1);
  runs("cat > input; /usr/bin/env | sort > environment");
  add("train-7");
  finish();

  EXPECT_EQ(text_of("input"), "{\"job\":\"train-7\"}");
  const std::string environment = text_of("environment");
  for (const char* line : {"MUSTER_EVENT=job.failed\n", "MUSTER_JOB=train-7\n",
                           "MUSTER_PROJECT=lab\n", "PATH=/usr/local/bin:/usr/bin:/bin\n"}) {
    EXPECT_NE(environment.find(line), std::string::npos) << environment;
  }
  EXPECT_EQ(environment.find("SECRET"), std::string::npos);
}

TEST_F(Hook, IsTriedThreeTimes) {
  runs("echo x >> tries; exit 3");
  add("one");
  finish();

  EXPECT_EQ(text_of("tries"), "x\nx\nx\n");
}

TEST_F(Hook, IsTriedNoMoreOnceItHasSucceeded) {
  runs("echo x >> tries; test $(wc -l < tries) = 2");
  add("one");
  finish();

  EXPECT_EQ(text_of("tries"), "x\nx\n");
}

TEST_F(Hook, RunsAtMostFourAtOnceAndAllOfThemInTheEnd) {
  // Each run writes how many runs have a file in the folder at the same time.
  runs("mkdir -p in; touch in/$MUSTER_JOB; ls in | wc -l > seen.$MUSTER_JOB; rm in/$MUSTER_JOB");
  constexpr int kJobs = 12;
  for (int i = 0; i < kJobs; ++i) add("j" + std::to_string(i));
  finish();

  for (int i = 0; i < kJobs; ++i) {
    const std::string seen = text_of("seen.j" + std::to_string(i));
    ASSERT_FALSE(seen.empty()) << i;
    EXPECT_LE(std::stoul(seen), CommandHook::kMostAtOnce);
  }
}

TEST_F(Hook, ThatDoesNotExistIsReportedEachTimeThatItIsSetAndAbandoned) {
  for (int reload = 0; reload < 2; ++reload) {
    testing::internal::CaptureStderr();
    hook_.set_command({"/nowhere/hook"});
    EXPECT_NE(testing::internal::GetCapturedStderr().find(
                  "notify.command: '/nowhere/hook' is not a program that can be run"),
              std::string::npos)
        << reload;
  }
  add("one");
  finish();
  EXPECT_TRUE(hook_.is_idle());
}

TEST_F(Hook, DoesNothingWithoutACommand) {
  add("one");
  EXPECT_TRUE(hook_.is_idle());
}

// The process that it leaves behind keeps the pipe of the output open.
TEST_F(Hook, DoesNotBlockTheServerWithOutputThatFillsTheBufferExactly) {
  runs("sleep 1000 & head -c 4096 /dev/zero | tr '\\0' x; echo x >> tries");
  add("one");
  finish();

  EXPECT_EQ(text_of("tries"), "x\n");
}

class ImpatientHook : public Hook {
 protected:
  ImpatientHook()
      : Hook({.timeout = std::chrono::milliseconds(300), .pause = std::chrono::milliseconds(1)}) {}
};

TEST_F(ImpatientHook, KillsACommandThatTakesTooLongWithItsChildren) {
  runs("echo $$ >> pids; sleep 1000 & echo $! >> pids; wait");
  add("one");
  finish();

  // Only processes that had started wrote their number: on a slow machine the run may end earlier.
  std::istringstream pids(text_of("pids"));
  for (pid_t pid = 0; pids >> pid;) {
    const auto process = base::open_pidfd(pid);
    if (!process) continue;  // it has ended
    // It was killed, and may not have ended yet.
    pollfd end{process->get(), POLLIN, 0};
    EXPECT_EQ(::poll(&end, 1, 30'000), 1) << pid;
  }
}

TEST(HookOfALeavingServer, KillsRunningCommands) {
  const base::TestFolder folder;
  base::EventLoop loop;
  {
    CommandHook hook(loop);
    hook.set_command({"/bin/sh", "-c", "sleep 1000"});
    hook.add({.payload = "{}"});
    EXPECT_FALSE(hook.is_idle());
  }  // returns at once: every process has ended
}

}  // namespace
}  // namespace muster::notify
