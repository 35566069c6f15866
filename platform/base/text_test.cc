#include "base/text.h"

#include <gtest/gtest.h>

namespace muster::base {
namespace {

TEST(Rfc3339, CutsTheFractionToThePlacesAskedFor) {
  const Time time{std::chrono::nanoseconds{1'700'000'000'123'456'789}};

  EXPECT_EQ(to_rfc3339(time), "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(to_rfc3339(time, 0), "2023-11-14T22:13:20Z");
  EXPECT_EQ(to_rfc3339(time, 9), "2023-11-14T22:13:20.123456789Z");
}

TEST(Nearest, FindsTheWordThatWasMeantAndNothingFarFetched) {
  const std::vector<std::string> words{"submit", "list", "logs", "delete"};

  EXPECT_EQ(nearest("submti", words), "submit");
  EXPECT_EQ(nearest("lst", words), "list");
  EXPECT_EQ(nearest("lits", words), "list");
  EXPECT_EQ(nearest("frobnicate", words), "");
}

TEST(ShellQuoted, SurvivesAShell) {
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_joined({"mpirun", "-np", "2", "a b", ""}), "mpirun -np 2 'a b' ''");
}

TEST(Split, GivesThePartsBetweenSeparators) {
  EXPECT_EQ(split("a:b::c", ':'), (std::vector<std::string>{"a", "b", "", "c"}));
  EXPECT_EQ(split("", ':'), std::vector<std::string>{});
}

}  // namespace
}  // namespace muster::base
