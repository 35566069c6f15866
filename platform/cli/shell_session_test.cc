#include "cli/shell_session.h"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

using Words = std::vector<std::string>;

/// What goes along: TERM, or "", and the variables.
Words taken_along(const std::map<std::string, std::string>& caller) {
  const Words command = shell_command(caller);
  return {command.begin() + 4, command.end()};
}

TEST(ShellCommand, TakesTheTerminalAndTheLanguageAlongAndNothingElse) {
  EXPECT_EQ(taken_along({{"TERM", "screen"},
                         {"LANG", "de_DE.UTF-8"},
                         {"LC_TIME", "C"},
                         {"COLORTERM", "truecolor"},
                         {"PATH", "/secret"},
                         {"AWS_SECRET_ACCESS_KEY", "x"}}),
            (Words{"screen", "COLORTERM=truecolor", "LANG=de_DE.UTF-8", "LC_TIME=C"}));
}

TEST(ShellCommand, SpeaksUtf8WhereNothingIsSaid) {
  EXPECT_EQ(taken_along({}), (Words{"", "LANG=C.UTF-8"}));
  EXPECT_EQ(taken_along({{"LANG", ""}, {"LC_ALL", "C"}}), (Words{"", "LC_ALL=C"}));
}

TEST(ShellCommand, TakesNoTerminalAlongThatIsNone) {
  for (const char* type : {"dumb", "../../etc/passwd", "a b", "x\ny", ""}) {
    EXPECT_EQ(taken_along({{"TERM", type}}).front(), "") << type;
  }
}

}  // namespace
}  // namespace muster::cli
