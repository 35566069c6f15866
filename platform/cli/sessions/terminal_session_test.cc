#include "cli/sessions/terminal_session.h"

#include <gtest/gtest.h>

namespace muster::cli::sessions {

namespace {

TEST(DetachKeys, AreParsedFromTheirUsualNotation) {
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

TEST(DetachKeys, HaveATextForMessages) {
  EXPECT_EQ(words_of_detach_keys("\x10\x11"), "ctrl-p ctrl-q");
  EXPECT_EQ(words_of_detach_keys("\x01"
                                 "d\x1d"),
            "ctrl-a d ctrl-]");
}

TEST(DetachKeys, DetachHoweverTheInputIsSplit) {
  DetachKeys keys("\x10\x11");

  EXPECT_EQ(keys.pass("ls\r\x10"), "ls\r");
  EXPECT_FALSE(keys.found());
  EXPECT_EQ(keys.pass("\x11more"), "");

  EXPECT_TRUE(keys.found());
}

TEST(DetachKeys, PassAllOtherInputOn) {
  DetachKeys keys("\x10\x11");

  EXPECT_EQ(keys.pass("\x10"), "");
  EXPECT_EQ(keys.pass("x\x10\x10"), "\x10x\x10");
  EXPECT_EQ(keys.pass("\x0e\x11"), "\x10\x0e\x11");
  EXPECT_FALSE(keys.found());
  EXPECT_EQ(DetachKeys("").pass("\x10\x11"), "\x10\x11");
}

TEST(DetachKeys, DetectASequenceThatContainsItsOwnBeginning) {
  DetachKeys keys("aab");

  EXPECT_EQ(keys.pass("aaab"), "a");
  EXPECT_TRUE(keys.found());
}

}  // namespace

namespace {

/// The values passed to the shell: TERM or "", and the variables.
std::vector<std::string> taken_along(const std::map<std::string, std::string>& caller) {
  const std::vector<std::string> command = shell_command(caller);
  return {command.begin() + 4, command.end()};
}

TEST(ShellCommand, PassesOnlyTheTerminalTypeAndTheLocale) {
  EXPECT_EQ(
      taken_along({{"TERM", "screen"},
                   {"LANG", "de_DE.UTF-8"},
                   {"LC_TIME", "C"},
                   {"COLORTERM", "truecolor"},
                   {"PATH", "/secret"},
                   {"AWS_SECRET_ACCESS_KEY", "x"}}),
      (std::vector<std::string>{"screen", "COLORTERM=truecolor", "LANG=de_DE.UTF-8", "LC_TIME=C"}));
}

TEST(ShellCommand, UsesUtf8WithoutALocale) {
  EXPECT_EQ(taken_along({}), (std::vector<std::string>{"", "LANG=C.UTF-8"}));
  EXPECT_EQ(taken_along({{"LANG", ""}, {"LC_ALL", "C"}}),
            (std::vector<std::string>{"", "LC_ALL=C"}));
}

TEST(ShellCommand, PassesNoTerminalTypeWithoutATerminal) {
  for (const char* type : {"dumb", "../../etc/passwd", "a b", "x\ny", ""}) {
    EXPECT_EQ(taken_along({{"TERM", type}}).front(), "") << type;
  }
}

}  // namespace

}  // namespace muster::cli::sessions
