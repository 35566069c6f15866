#include "engine/shim/program_input.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace muster::engine {
namespace {

TEST(ProgramInput, IsWhatThePlanAsksFor) {
  const auto none = make_program_input({});
  const auto pipe = make_program_input({.input = true});
  const auto terminal = make_program_input({.input = true, .terminal = true});

  ASSERT_TRUE(none && pipe && terminal);
  EXPECT_FALSE(none->theirs || none->to_program || none->from_program);
  EXPECT_TRUE(pipe->theirs && pipe->to_program && !pipe->from_program);
  EXPECT_EQ(::isatty(pipe->theirs.get()), 0);
  EXPECT_TRUE(terminal->theirs && terminal->to_program && terminal->from_program);
  EXPECT_EQ(::isatty(terminal->theirs.get()), 1);
}

TEST(TerminalText, EndsLinesAsALogDoes) {
  TerminalText text;

  EXPECT_EQ(text.plain("one\r\ntwo\r"), "one\ntwo");
  EXPECT_EQ(text.plain("\nthree\r"), "\nthree");
  EXPECT_EQ(text.plain("50 %\r100 %\r\r\n"), "\r50 %\r100 %\r\n");
}

}  // namespace
}  // namespace muster::engine
