#include <gtest/gtest.h>

#include "cli/logs/log_printer.h"

namespace muster::cli::logs {

namespace {

std::string shown(const std::vector<std::string>& pieces, bool colour = true) {
  LogText text(colour);
  std::string out;
  for (const std::string& piece : pieces) text.append(piece, out);
  text.finish(out);
  return out;
}

TEST(LogText, LetsColoursPassAndTakesThemBack) {
  EXPECT_EQ(shown({"\x1b[1;31merror\x1b[0m: x"}), "\x1b[1;31merror\x1b[0m: x\x1b[0m");
  EXPECT_EQ(shown({"\x1b[38;2;1;2;3mx"}), "\x1b[38;2;1;2;3mx\x1b[0m");
  EXPECT_EQ(shown({"plain"}), "plain");
}

TEST(LogText, LeavesColoursOutWhereNoneAreShown) {
  EXPECT_EQ(shown({"\x1b[31merror\x1b[0m"}, false), "error");
}

TEST(LogText, LeavesOutWhatLaysOutAScreen) {
  EXPECT_EQ(shown({"a\x1b[2K\x1b[1Ab\x1b[10;20Hc\x1b[?25ld\x1b[2J"}), "abcd");
}

TEST(LogText, ShowsEveryOtherControlCharacter) {
  EXPECT_EQ(shown({"\x1b]0;title\a"}), "\\x1b]0;title\\x07");
  EXPECT_EQ(shown({"\x1b"
                   "c\x1bP1$r\x1b\\"}),
            "\\x1bc\\x1bP1$r\\x1b\\");
  EXPECT_EQ(shown({"\x1b[5n\x1b[6c\x1b[21t"}), "\\x1b[6c\\x1b[21t");
  EXPECT_EQ(shown({"\x1b[>4;2m"}), "\\x1b[>4;2m");
  EXPECT_EQ(shown({"\b\x7f\xc2\x9b"}), "\\x08\\x7f\\u009b");
}

TEST(LogText, ShowsBytesThatAreNoTextAndWhatTurnsTextAround) {
  EXPECT_EQ(shown({"\x9b"
                   "31m \xff \xe2\x82 \xc3"}),
            "\\x9b31m \\xff \\xe2\\x82 \\xc3");
  EXPECT_EQ(shown({"a\u202eb\u2066c\u200fd\u061ce"}), "a\\u202eb\\u2066c\\u200fd\\u061ce");
  EXPECT_EQ(shown({"\u00e9 \u4e2d \U0001f600"}), "\u00e9 \u4e2d \U0001f600");
  EXPECT_EQ(shown({"\xc3\x1b[31mx"}), "\\xc3\x1b[31mx\x1b[0m");
}

TEST(LogText, HidesNoText) {
  EXPECT_EQ(shown({"\x1b[8mx"}), "x");
  EXPECT_EQ(shown({"\x1b[31;08mx"}), "x");
  EXPECT_EQ(shown({"\x1b[38;5;8mx"}), "\x1b[38;5;8mx\x1b[0m");
  EXPECT_EQ(shown({"\x1b[38;2;8;8;8mx"}), "\x1b[38;2;8;8;8mx\x1b[0m");
}

TEST(LogText, MayBeCutAnywhere) {
  const std::string text =
      "\u202e\u4e2d\xe2 a\x1b[31mred\x1b[0m \x1b[2K\x1b]0;t\a \xc2\x9b"
      "b";
  const std::string whole = shown({text});
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(shown({text.substr(0, cut), text.substr(cut)}), whole) << cut;
  }
}

TEST(LogText, ShowsASequenceThatNeverEnds) {
  EXPECT_EQ(shown({"\x1b[12"}), "\\x1b[12");
  EXPECT_EQ(shown({"\x1b"}), "\\x1b");
  EXPECT_EQ(shown({"\x1b[" + std::string(100, '1')}), "\\x1b[" + std::string(100, '1'));
  EXPECT_EQ(shown({"\x1b[\x1b[31mx"}), "\\x1b[\x1b[31mx\x1b[0m");
}

}  // namespace

}  // namespace muster::cli::logs
