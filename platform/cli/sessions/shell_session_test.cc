#include <gtest/gtest.h>

#include "cli/sessions/terminal_session.h"

namespace muster::cli::sessions {

namespace {

/// What goes along: TERM, or "", and the variables.
std::vector<std::string> taken_along(const std::map<std::string, std::string>& caller) {
  const std::vector<std::string> command = shell_command(caller);
  return {command.begin() + 4, command.end()};
}

TEST(ShellCommand, TakesTheTerminalAndTheLanguageAlongAndNothingElse) {
  EXPECT_EQ(
      taken_along({{"TERM", "screen"},
                   {"LANG", "de_DE.UTF-8"},
                   {"LC_TIME", "C"},
                   {"COLORTERM", "truecolor"},
                   {"PATH", "/secret"},
                   {"AWS_SECRET_ACCESS_KEY", "x"}}),
      (std::vector<std::string>{"screen", "COLORTERM=truecolor", "LANG=de_DE.UTF-8", "LC_TIME=C"}));
}

TEST(ShellCommand, SpeaksUtf8WhereNothingIsSaid) {
  EXPECT_EQ(taken_along({}), (std::vector<std::string>{"", "LANG=C.UTF-8"}));
  EXPECT_EQ(taken_along({{"LANG", ""}, {"LC_ALL", "C"}}),
            (std::vector<std::string>{"", "LC_ALL=C"}));
}

TEST(ShellCommand, TakesNoTerminalAlongThatIsNone) {
  for (const char* type : {"dumb", "../../etc/passwd", "a b", "x\ny", ""}) {
    EXPECT_EQ(taken_along({{"TERM", type}}).front(), "") << type;
  }
}

}  // namespace

}  // namespace muster::cli::sessions
