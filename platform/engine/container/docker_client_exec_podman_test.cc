// Commands in containers of a real engine: see test_real_engine.h.
#include <gtest/gtest.h>

#include "engine/container/test_real_engine.h"

namespace muster::engine {
namespace {

using base::ErrorCode;

TEST_F(DockerClientPodman, CommandsReportTheirExitCode) {
  const std::string id = start_waiting("exec");
  Executed printing;
  execute(printing, id, {.argv = {"/program", "print", "o", "e"}});
  wait_for_end(printing);
  EXPECT_EQ(printing.recorded.output, "o");
  EXPECT_EQ(printing.recorded.error, "e");
  EXPECT_EQ(exit_of(printing).code, 0);
  EXPECT_FALSE(exit_of(printing).running);

  Executed failing;
  execute(failing, id, {.argv = {"/program", "exit", "42"}});
  wait_for_end(failing);
  EXPECT_EQ(exit_of(failing).code, 42);

  Executed named;
  execute(named, id,
          {.argv = {"/program", "show", "NAME"}, .environment = {"NAME=va l\"ue"}, .user = "ann"});
  wait_for_end(named);
  EXPECT_EQ(named.recorded.output, "va l\"ue");
}

TEST_F(DockerClientPodman, OutputContinuesAfterTheEndOfTheInput) {
  const std::string id = start_waiting("exec-cat");
  const std::string bytes = bytes_of(8 << 20);
  Executed cat;
  execute(cat, id, {.argv = {"/program", "cat"}});

  cat.recorded.stream->write(bytes);
  cat.recorded.stream->close_input();

  wait_for_end(cat);
  EXPECT_TRUE(cat.recorded.output == bytes) << cat.recorded.output.size();
  EXPECT_EQ(exit_of(cat).code, 0);
}

TEST_F(DockerClientPodman, ATerminalHasASizeAndNoFrames) {
  const std::string id = start_waiting("terminal");
  Executed terminal;
  execute(terminal, id, {.argv = {"/program", "cat"}, .terminal = true});
  ASSERT_TRUE(done([&](auto then) { client_.resize_exec(terminal.id, 40, 100, then); }));

  terminal.recorded.stream->write("hello\n\x04");

  wait_for_end(terminal);
  EXPECT_EQ(terminal.recorded.output, "hello\r\nhello\r\n");
}

TEST_F(DockerClientPodman, NoCommandRunsInAStoppedContainer) {
  const ContainerConfig settings = config("exec-ended", {"/program", "exit", "0"});
  run(settings);

  const auto id = loop_.answer<std::string>([&](auto then) {
    client_.create_exec(settings.name, {.argv = {"/program", "cat"}}, std::move(then));
  });

  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, ErrorCode::kConflict) << id.error().to_string();
}

}  // namespace
}  // namespace muster::engine
