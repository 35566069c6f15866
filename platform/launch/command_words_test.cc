#include "launch/command_words.h"

#include <gtest/gtest.h>

namespace muster::launch {
namespace {

using WordViews = std::vector<std::string_view>;

TEST(CommandWords, AreThoseOfAScriptToo) {
  const std::vector<std::string> command{"sh", "-c", "cd src;torchrun a.py & (wait)\n", "", "x"};

  EXPECT_EQ(words_of(command),
            (WordViews{"sh", "-c", "cd", "src", "torchrun", "a.py", "wait)", "x"}));
}

TEST(CommandWords, AreNoneOfNothing) {
  EXPECT_EQ(words_of({}), WordViews());
}

TEST(CommandWords, KnowAFileInAnyFolderBehindAnyOptionAndInQuotes) {
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
