#include <gtest/gtest.h>

#include "engine/doctor/doctor.h"
#include "engine/doctor/test_programs.h"

namespace muster::engine::doctor {
namespace {

TEST(Programs, RunAtTheSameTimeAndEachAnswerIsRead) {
  StandIns programs;
  programs.add("one", "echo first; echo second >&2; exit 3");
  programs.add("two", "echo \"$1 $GREETING\"");

  const Answers answers = ask_all({{"a", {"one"}}, {"b", {"two", "hello"}}, {"c", {"three"}}},
                                  programs.environment({"GREETING=world"}));

  EXPECT_EQ(answer_in(answers, "a").path, programs.path("one"));
  EXPECT_EQ(answer_in(answers, "a").code, 3);
  EXPECT_FALSE(answer_in(answers, "a").is_good());
  EXPECT_EQ(complaint(answer_in(answers, "a")), "second");
  EXPECT_TRUE(answer_in(answers, "b").is_good());
  EXPECT_EQ(answer_in(answers, "b").output, "hello world\n");
  EXPECT_FALSE(answer_in(answers, "c").is_there());
  EXPECT_FALSE(answer_in(answers, "never asked").is_there());
  EXPECT_TRUE(ask_all({}, {}).empty());
}

TEST(Programs, AProgramThatDoesNotEndIsKilled) {
  StandIns programs;
  programs.add("sleeper", "exec sleep 1000");

  const Answers answers =
      ask_all({{"a", {"sleeper"}}}, programs.environment(), std::chrono::milliseconds(50));

  EXPECT_TRUE(answer_in(answers, "a").was_late);
  EXPECT_FALSE(answer_in(answers, "a").is_good());
  EXPECT_EQ(complaint(answer_in(answers, "a")), "it did not answer in time");
}

TEST(Programs, AreShownByTheFirstLineOfTheirOutput) {
  EXPECT_EQ(first_line("\n  \n  a b \r\nc"), "a b");
  EXPECT_EQ(first_line("\n\t\n"), "");
  EXPECT_EQ(complaint({.path = "/x", .code = 2}), "it ended with code 2");
  EXPECT_EQ(complaint({.path = "/x", .code = -1}), "it was killed by a signal");
  EXPECT_EQ(complaint({.path = "/x", .code = 1, .output = "no\n"}), "no");
}

}  // namespace
}  // namespace muster::engine::doctor
