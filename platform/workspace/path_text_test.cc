#include "workspace/path_text.h"

#include <gtest/gtest.h>

namespace muster::workspace {
namespace {

TEST(PathText, EscapesControlCharactersInNames) {
  EXPECT_EQ(shown("src/a b.py"), "'src/a b.py'");
  EXPECT_EQ(shown("two\nlines\t"), R"('two\nlines\t')");
  EXPECT_EQ(shown("it's \\n"), R"('it\'s \\n')");
  EXPECT_EQ(shown("\x1b[31mred\x7f"), R"('\x1b[31mred\x7f')");
  EXPECT_EQ(shown("caf\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x98\x80"),
            "'caf\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x98\x80'");
  // Invalid UTF-8, an 8-bit control character, a change of direction, an overlong form.
  EXPECT_EQ(shown("\xff\xc3"), R"('\xff\xc3')");
  EXPECT_EQ(shown("\xc2\x9b"), R"('\xc2\x9b')");
  EXPECT_EQ(shown("\xe2\x80\xae"), R"('\xe2\x80\xae')");
  EXPECT_EQ(shown("\xe0\x80\xaf"), R"('\xe0\x80\xaf')");
  EXPECT_EQ(shown("\xed\xa0\x80"), R"('\xed\xa0\x80')");
}

TEST(PathText, GivesASizeInItsUnitRoundedUp) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(1023), "1023 B");
  EXPECT_EQ(size_text(1024), "1 KiB");
  EXPECT_EQ(size_text(int64_t{1} << 30), "1 GiB");
  EXPECT_EQ(size_text((int64_t{1} << 30) + 1), "1.1 GiB");
  EXPECT_EQ(size_text(int64_t{3} << 29), "1.5 GiB");
  EXPECT_EQ(size_text(int64_t{1} << 60), "1 EiB");
}

TEST(PathText, CountsWithTheNoun) {
  EXPECT_EQ(count_text(1, "entry", "entries"), "1 entry");
  EXPECT_EQ(count_text(999, "entry", "entries"), "999 entries");
  EXPECT_EQ(count_text(1234567, "entry", "entries"), "1,234,567 entries");
}

}  // namespace
}  // namespace muster::workspace
