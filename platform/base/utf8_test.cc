#include "base/utf8.h"

#include <gtest/gtest.h>

namespace muster::base {
namespace {

TEST(Utf8, IsWhatTheStandardSaysItIs) {
  for (const std::string_view good : {"", "plain", "é", "漢字", "🚀", "\xF4\x8F\xBF\xBF", "\x7F"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
    EXPECT_TRUE(is_utf8("in the midst of ASCII " + std::string(good) + " and more of it"));
  }
  for (const std::string_view bad :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3", "\xE6\xBC", "\xF0\x9F\x9A", "\xC3("}) {
    EXPECT_FALSE(is_utf8(bad));
    EXPECT_FALSE(is_utf8("in the midst of ASCII " + std::string(bad)));
  }
}

TEST(Utf8, IsCutBetweenCharactersOnly) {
  EXPECT_EQ(shortened("aé漢", 60), "aé漢");
  EXPECT_EQ(shortened("aé漢", 2), "a...");
  EXPECT_EQ(shortened("aé漢", 3), "aé...");
}

TEST(Utf8, HasAReplacementForEachByteThatIsNone) {
  EXPECT_EQ(as_utf8("a\xFF\xC3(é"), "a\xEF\xBF\xBD\xEF\xBF\xBD(é");
}

}  // namespace
}  // namespace muster::base
