#include <gtest/gtest.h>

#include "cli/sessions/terminal_session.h"

namespace muster::cli::sessions {

namespace {

TEST(DetachKeys, AreReadAsOneWritesThem) {
  EXPECT_EQ(*parse_detach_keys("ctrl-p,ctrl-q"), "\x10\x11");
  EXPECT_EQ(*parse_detach_keys("ctrl-a,d"),
            "\x01"
            "d");
  EXPECT_EQ(*parse_detach_keys("ctrl-@"), std::string(1, '\0'));
  EXPECT_EQ(*parse_detach_keys("ctrl-]"), "\x1d");
  for (const char* none : {"", "ctrl-", "ctrl-1", "p,,q", "alt-x", "ctrl-p ctrl-q"}) {
    EXPECT_FALSE(parse_detach_keys(none)) << none;
  }
}

TEST(DetachKeys, AreToldInWords) {
  EXPECT_EQ(words_of_detach_keys("\x10\x11"), "ctrl-p ctrl-q");
  EXPECT_EQ(words_of_detach_keys("\x01"
                                 "d\x1d"),
            "ctrl-a d ctrl-]");
}

TEST(DetachKeys, LeaveWhereverTheInputIsCut) {
  DetachKeys keys("\x10\x11");

  EXPECT_EQ(keys.pass("ls\r\x10"), "ls\r");
  EXPECT_FALSE(keys.found());
  EXPECT_EQ(keys.pass("\x11more"), "");

  EXPECT_TRUE(keys.found());
}

TEST(DetachKeys, PassEverythingElseOn) {
  DetachKeys keys("\x10\x11");

  EXPECT_EQ(keys.pass("\x10"), "");
  EXPECT_EQ(keys.pass("x\x10\x10"), "\x10x\x10");
  EXPECT_EQ(keys.pass("\x0e\x11"), "\x10\x0e\x11");
  EXPECT_FALSE(keys.found());
  EXPECT_EQ(DetachKeys("").pass("\x10\x11"), "\x10\x11");
}

TEST(DetachKeys, FindASequenceThatRepeatsItself) {
  DetachKeys keys("aab");

  EXPECT_EQ(keys.pass("aaab"), "a");
  EXPECT_TRUE(keys.found());
}

}  // namespace

}  // namespace muster::cli::sessions
