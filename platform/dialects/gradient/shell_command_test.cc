#include "dialects/gradient/shell_command.h"

#include <gtest/gtest.h>

#include <utility>

namespace muster::dialects::gradient {

namespace {

using Words = std::vector<std::string>;

TEST(ShellCommand, WordsAreAsAShellSplitsThem) {
  const std::vector<std::pair<std::string, Words>> cases{
      {"", {}},
      {" mpirun  -np\t2 a ", {"mpirun", "-np", "2", "a"}},
      {"a 'b c' \"d  e\"", {"a", "b c", "d  e"}},
      {"a'b'\"c\"d", {"abcd"}},
      {"a '' b", {"a", "", "b"}},
      {"-mca btl ^openib -x A=b=c", {"-mca", "btl", "^openib", "-x", "A=b=c"}},
      {"a '$HOME; x' \"it's\"", {"a", "$HOME; x", "it's"}},
  };
  for (const auto& [text, words] : cases) EXPECT_EQ(plain_words(text), words) << text;
}

TEST(ShellCommand, WhatAShellHasToDoMoreWithIsLeftToIt) {
  for (const char* const text :
       {"a | b", "a && b", "a; b", "a > b", "a $HOME", "a \"$HOME\"", "a `b`", "a *", "a b?",
        "a\nb", "(a)", "a \\b", "a \"b\\c\"", "~/a", "a # b", "a 'b", "a \"b"}) {
    EXPECT_EQ(plain_words(text), std::nullopt) << text;
  }
}

TEST(ShellCommand, OnlyALauncherIsCalledWithoutAShell) {
  EXPECT_EQ(master_command("mpirun -np 2 ./a"), (Words{"mpirun", "-np", "2", "./a"}));
  EXPECT_EQ(master_command("/opt/bin/mpiexec.hydra ./a"), (Words{"/opt/bin/mpiexec.hydra", "./a"}));
  EXPECT_EQ(master_command("mpirunner a"), (Words{"sh", "-c", "mpirunner a"}));
  EXPECT_EQ(master_command("cd x && mpirun a"), (Words{"sh", "-c", "cd x && mpirun a"}));
  EXPECT_EQ(master_command("mpirun -np $N a"), (Words{"sh", "-c", "mpirun -np $N a"}));
  EXPECT_EQ(master_command("exit 3"), (Words{"sh", "-c", "exit 3"}));
}

TEST(ShellCommand, KnowsASleepWithoutEnd) {
  EXPECT_TRUE(is_endless_sleep(" sleep  infinity "));
  EXPECT_FALSE(is_endless_sleep("sleep 10"));
  EXPECT_FALSE(is_endless_sleep("sleep infinity && true"));
}

}  // namespace

}  // namespace muster::dialects::gradient
