#include "engine/process/process_exec.h"

#include <gtest/gtest.h>

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

}  // namespace

}  // namespace muster::engine
