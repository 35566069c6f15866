#include "dialects/runai/words.h"

#include <gtest/gtest.h>

#include "cli/command/arguments.h"
#include "dialects/runai/command_tree.h"

namespace muster::dialects::runai {

namespace {

using Words = std::vector<std::string>;

TEST(RunaiWords, AFlagAcceptsItsValueInEverySpelling) {
  const Words expected{"submit", "--gpu=1"};
  for (const Words& words :
       {Words{"submit", "-g", "1"}, Words{"submit", "-g=1"}, Words{"submit", "-g1"},
        Words{"submit", "--gpu=1"}, Words{"submit", "--gpu", "1"}}) {
    EXPECT_EQ(plain_words(words), expected) << words[1];
  }
}

TEST(RunaiWords, AVariableIsNotSplitAtItsEqualsSign) {
  EXPECT_EQ(plain_words({"submit", "-eA=b=c", "-e", "B=d"}),
            (Words{"submit", "--environment=A=b=c", "--environment=B=d"}));
}

TEST(RunaiWords, CommandHasAValueIfTheNextWordIsNotAFlag) {
  const std::vector<std::pair<Words, Words>> table{
      {{"submit", "--command=sh"}, {"submit", "--command=sh"}},
      {{"submit", "--command", "sh"}, {"submit", "--command=sh"}},
      {{"submit", "--command", "-g", "1"}, {"submit", "--command", "--gpu=1"}},
      {{"submit", "--command", "--", "sh"}, {"submit", "--command", "--", "sh"}},
      {{"submit", "--command"}, {"submit", "--command"}},
  };
  for (const auto& [words, plain] : table) EXPECT_EQ(plain_words(words), plain);
}

TEST(RunaiWords, AValueMayLookLikeAFlag) {
  EXPECT_EQ(plain_words({"submit", "--args", "-c", "--args", "--lr=1"}),
            (Words{"submit", "--args=-c", "--args=--lr=1"}));
}

TEST(RunaiWords, AnEmptyValueIsKept) {
  EXPECT_EQ(plain_words({"submit", "--args", "", "dist"}), (Words{"submit", "--args", "", "dist"}));
  EXPECT_EQ(plain_words({"submit", "--args=", "dist"}), (Words{"submit", "--args", "", "dist"}));
}

TEST(RunaiWords, ASwitchAcceptsGosTruthValues) {
  const Words words = plain_words({"submit", "--interactive=0", "-t=T", "--stdin", "--elastic=1"});
  EXPECT_EQ(words, (Words{"submit", "--interactive=0", "--tty=T", "--stdin", "--elastic=1"}));

  const cli::Arguments arguments = cli::sort_arguments(command_tree(), words);
  EXPECT_TRUE(arguments.faults.empty());
  EXPECT_FALSE(arguments.has("--interactive"));
  for (const char* flag : {"--tty", "--stdin", "--elastic"}) {
    EXPECT_TRUE(arguments.has(flag)) << flag;
  }
}

TEST(RunaiWords, LettersOfSwitchesMayBeCombined) {
  EXPECT_EQ(plain_words({"exec", "-it", "dist", "--", "bash"}),
            (Words{"exec", "-it", "dist", "--", "bash"}));
}

TEST(RunaiWords, WordsAfterTheNameOfExecAreTheProgram) {
  EXPECT_EQ(plain_words({"exec", "dist", "ls", "-l", "--pod"}),
            (Words{"exec", "dist", "--", "ls", "-l", "--pod"}));
}

TEST(RunaiWords, WordsAfterTheDashesAreNotChanged) {
  EXPECT_EQ(plain_words({"submit", "--", "-g=1", "mj", "--command", "sh"}),
            (Words{"submit", "--", "-g=1", "mj", "--command", "sh"}));
}

TEST(RunaiWords, BothAliasesOfSubmitMpiAreAccepted) {
  for (const std::string alias : {"mpi", "mj", "submit-mpi"}) {
    const cli::Arguments arguments =
        cli::sort_arguments(command_tree(), plain_words({alias, "dist"}));
    EXPECT_EQ(arguments.path, Words{"submit-mpi"}) << alias;
    EXPECT_EQ(arguments.names, Words{"dist"}) << alias;
  }
}

TEST(RunaiWords, AJobMayHaveTheNameOfACommand) {
  EXPECT_EQ(plain_words({"delete", "mj"}), (Words{"delete", "mj"}));
}

TEST(RunaiWords, TheParserKeepsValuesUnchanged) {
  const Words words = plain_words({"submit", "--args", "-c", "--args", "", "--args", "[1,2]", "-e",
                                   "A={}", "--args=a b", "-e=B=-x"});
  const cli::Arguments arguments = cli::sort_arguments(command_tree(), words);
  EXPECT_TRUE(arguments.faults.empty());
  EXPECT_EQ(arguments.flags.at("--args"), (Words{"-c", "", "[1,2]", "a b"}));
  EXPECT_EQ(arguments.flags.at("--environment"), (Words{"A={}", "B=-x"}));
}

TEST(RunaiWords, ATypoIsReportedWithTheNearestFlag) {
  const auto fault_of = [](const Words& words) {
    const cli::Arguments arguments = cli::sort_arguments(command_tree(), plain_words(words));
    return arguments.faults.empty() ? "" : arguments.faults.front().what;
  };
  EXPECT_EQ(fault_of({"submit-mpi", "dist", "--proceses=2"}),
            "unknown flag '--proceses'; did you mean '--processes'?");
  EXPECT_EQ(fault_of({"submit-mpu", "dist"}),
            "unknown command 'submit-mpu'; did you mean 'submit-mpi'?");
}

}  // namespace

}  // namespace muster::dialects::runai
