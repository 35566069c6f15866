#include "launch/mpirun_command.h"

#include <gtest/gtest.h>

namespace muster::launch {
namespace {

bool plain(const std::vector<std::string>& argv) {
  return is_plain_mpirun(argv);
}

TEST(PlainMpirun, IsOpenMpisLauncherUnderAnyOfItsNames) {
  EXPECT_TRUE(plain({"mpirun", "-np", "2", "train"}));
  EXPECT_TRUE(plain({"/usr/bin/mpiexec.openmpi", "-mca", "btl", "^openib", "train"}));
}

TEST(PlainMpirun, IsNeitherAScriptNorAnotherLauncher) {
  EXPECT_FALSE(plain({"sh", "-c", "mpirun -np 2 train | grep loss"}));
  EXPECT_FALSE(plain({"horovodrun", "-np", "2", "train"}));
  EXPECT_FALSE(plain({}));
}

TEST(PlainMpirun, ExcludesOptionsThatRedirectTheOutput) {
  for (const char* option : {"-output-filename", "--tag-output", "--timestamp-output", "-xterm"}) {
    EXPECT_FALSE(plain({"mpirun", option, "train"})) << option;
  }
}

TEST(LauncherOf, IsTheFirstWordThatNamesAnMpiLauncher) {
  EXPECT_EQ(launcher_of({"mpiexec.hydra", "-np", "2", "train"}), "mpiexec.hydra");
  EXPECT_EQ(launcher_of({"/opt/openmpi/bin/mpirun", "train"}), "/opt/openmpi/bin/mpirun");
  EXPECT_EQ(launcher_of({"sh", "-c", "cd /data; (mpiexec -np 2 train)"}), "mpiexec");
  EXPECT_EQ(launcher_of({"numactl", "mpirun", "train"}), "mpirun");
  EXPECT_EQ(launcher_of({"horovodrun", "-np", "2", "train"}), std::nullopt);
  EXPECT_EQ(launcher_of({}), std::nullopt);
}

}  // namespace
namespace {

using WordViews = std::vector<std::string_view>;

TEST(CommandWords, IncludeTheWordsOfAScript) {
  const std::vector<std::string> command{"sh", "-c", "cd src;torchrun a.py & (wait)\n", "", "x"};

  EXPECT_EQ(words_of(command),
            (WordViews{"sh", "-c", "cd", "src", "torchrun", "a.py", "wait)", "x"}));
}

TEST(CommandWords, AreEmptyForAnEmptyCommand) {
  EXPECT_EQ(words_of({}), WordViews());
}

TEST(CommandWords, MatchAFileInAnyFolderAfterAnyOptionAndInQuotes) {
  for (const char* word : {"torchrun", "/usr/bin/torchrun", "--run=torchrun", "--run=/a/torchrun",
                           "'torchrun'", "\"/a b/torchrun\""}) {
    EXPECT_TRUE(is_file_named(word, "torchrun")) << word;
  }
  for (const char* word : {"", "'", "torchrun.sh", "mytorchrun", "torchrun/", "torchrun=1"}) {
    EXPECT_FALSE(is_file_named(word, "torchrun")) << word;
  }
}

}  // namespace
}  // namespace muster::launch
