#include "engine/process/process_exec.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>

namespace muster::engine {

namespace {

using Words = std::vector<std::string>;

const InnerPlan kTask{.argv = {"train"},
                      .environment = {"PATH=/task", "LD_LIBRARY_PATH=/task/lib", "COLOUR=blue"},
                      .folder = "/work",
                      .own_process_tree = true};

TEST(ExecProgram, AProgramGetsTheTasksEnvironmentAndItsOwn) {
  const InnerPlan program =
      exec_program({.argv = {"ls", "-l"}, .environment = {{"COLOUR", "red"}, {"TERM", "xterm"}}},
                   kTask, "/opt/muster/muster-shim");

  EXPECT_EQ(program.argv, (Words{"ls", "-l"}));
  EXPECT_EQ(program.environment,
            (Words{"PATH=/task", "LD_LIBRARY_PATH=/task/lib", "COLOUR=red", "TERM=xterm"}));
  EXPECT_EQ(program.folder, "/work");
  EXPECT_TRUE(program.own_process_tree);
}

TEST(ExecProgram, AHelperGetsNothingOfTheTasksEnvironment) {
  const std::vector<std::pair<Helper, std::string>> helpers{
      {Helper::kPack, "pack"}, {Helper::kUnpack, "unpack"}, {Helper::kConnect, "connect"}};
  for (const auto& [helper, word] : helpers) {
    const InnerPlan program = exec_program({.helper = helper, .argv = {"-x; what comes"}}, kTask,
                                           "/opt/muster/muster-shim");

    EXPECT_EQ(program.argv, (Words{"/opt/muster/muster-helper", word, "-x; what comes"}));
    EXPECT_EQ(program.environment, Words());
    EXPECT_EQ(program.folder, "/work");
    EXPECT_TRUE(program.own_process_tree);
  }
}

// Each output that the engine reads is followed by another, from the test.
TEST(StartExec, AProgramEndsAlthoughAnotherProcessWritesWithoutEnd) {
  constexpr int kWithoutEnd = 10'000'000;
  base::EventLoop loop;
  auto task = base::open_pidfd(::getpid());
  ASSERT_TRUE(task);
  std::string number;
  base::UniqueFd pipe;
  int outputs = 0;
  std::optional<job::ExitStatus> end;
  std::unique_ptr<Exec> exec;
  const auto on_output = [&](std::string_view text, bool) {
    if (!pipe) {
      number += text;
      if (!number.ends_with('\n')) return;
      number.pop_back();
      const std::string path = "/proc/" + number + "/fd/1";
      pipe = base::UniqueFd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
      exec->write("\n");  // the program may end
    }
    EXPECT_EQ(::write(pipe.get(), "more\n", 5), 5);
    if (++outputs < kWithoutEnd) return;
    exec->pause(true);
    loop.stop();
  };
  const auto on_exit = [&](const job::ExitStatus& status) {
    end = status;
    loop.stop();
  };
  auto started = start_exec(loop, MUSTER_SHIM, base::current_environment(),
                            {.argv = {"sh", "-c", "echo $$; read x; exit 3"},
                             .environment = {"PATH=/usr/bin:/bin"},
                             .folder = "/"},
                            {.inner = ::getpid(), .pidfd = *std::move(task)}, {},
                            {.on_output = on_output, .on_exit = on_exit});
  ASSERT_TRUE(started) << started.error().what;
  exec = std::move(started->exec);

  loop.run();

  EXPECT_EQ(end, job::ExitStatus{.code = 3});
  exec.reset();
  EXPECT_TRUE(base::wait_for(started->helper));
}

}  // namespace

}  // namespace muster::engine
