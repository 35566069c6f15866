#include "base/subprocess.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/test_failing_calls.h"

namespace muster::base {
namespace {

/// The standard output of a child, and how it ended.
struct Outcome {
  std::string output;
  int status = 0;
};

Outcome run(SpawnOptions options) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  options.descriptors.emplace_back(writer.get(), 1);
  auto child = spawn(options);
  EXPECT_TRUE(child) << child.error().what;
  writer.reset();
  Outcome outcome;
  std::array<char, 4096> buffer{};
  while (true) {
    const ssize_t count = ::read(reader.get(), buffer.data(), buffer.size());
    if (count <= 0) break;
    outcome.output.append(buffer.data(), static_cast<size_t>(count));
  }
  outcome.status = *wait_for(*child);
  return outcome;
}

TEST(Spawn, PassesOnlyTheListedDescriptors) {
  UniqueFd leak(::open("/dev/null", O_RDONLY));  // without O_CLOEXEC, as in some libraries
  ASSERT_TRUE(leak);

  const Outcome outcome = run({.argv = {"sh", "-c", "ls /proc/self/fd | tr '\\n' ' '"},
                               .environment = current_environment()});

  EXPECT_EQ(outcome.output, "0 1 2 3 ");  // ls itself opens 3 to read the folder
}

TEST(Spawn, PutsEachDescriptorAtItsNumberEvenIfNumbersCross) {
  UniqueFd first(::open("/etc/passwd", O_RDONLY | O_CLOEXEC));
  UniqueFd second(::open("/etc/group", O_RDONLY | O_CLOEXEC));

  const Outcome outcome = run({.argv = {"sh", "-c", "readlink /proc/$$/fd/3 /proc/$$/fd/4"},
                               .environment = current_environment(),
                               .descriptors = {{second.get(), 3}, {first.get(), 4}}});

  EXPECT_EQ(outcome.output, "/etc/group\n/etc/passwd\n");
}

TEST(Spawn, PassesExactlyTheGivenEnvironment) {
  const Outcome outcome = run({.argv = {"/usr/bin/env"}, .environment = {"ONLY=this"}});

  EXPECT_EQ(outcome.output, "ONLY=this\n");
}

TEST(Spawn, ReportsAMissingProgram) {
  const auto child = spawn({.argv = {"/no/such/program"}});

  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().what, "cannot start '/no/such/program': No such file or directory");
}

/// Exit code of a process that cannot watch its child: 0 if it has no child left.
int start_unwatched() {
  if (!fail_system_call(SYS_pidfd_open, EMFILE)) return 2;
  if (spawn({.argv = {"sleep", "1000"}, .environment = current_environment()})) return 3;
  return ::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD ? 0 : 1;
}

TEST(Spawn, LeavesNoChildThatItCannotWatch) {
  if (!can_fail_system_calls()) GTEST_SKIP() << "the machine permits no filter of system calls";
  EXPECT_EXIT(::_exit(start_unwatched()), testing::ExitedWithCode(0), "");
}

TEST(FindProgram, SearchesThePathOfTheGivenEnvironment) {
  EXPECT_EQ(*find_program("sh", {"A=b", "PATH=/no/such:/bin"}), "/bin/sh");
  EXPECT_EQ(*find_program("/bin/sh", {}), "/bin/sh");
  EXPECT_EQ(find_program("sh", {"PATH=/no/such"}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(find_program("/etc/passwd", {}).error().code, ErrorCode::kRefused);
  EXPECT_EQ(find_program("/etc", {}).error().code, ErrorCode::kRefused);
  EXPECT_EQ(find_program("/etc", {}).error().what, "'/etc' is a folder, not a program");
}

TEST(Spawn, APidfdSignalsTheChild) {
  auto child = spawn({.argv = {"sleep", "1000"}, .environment = current_environment()});
  ASSERT_TRUE(child);

  ASSERT_TRUE(send_signal(child->pidfd, SIGTERM));

  const int status = *wait_for(*child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

}  // namespace
}  // namespace muster::base
