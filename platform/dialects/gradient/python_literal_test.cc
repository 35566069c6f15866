#include "dialects/gradient/python_literal.h"

#include <gtest/gtest.h>

namespace muster::dialects::gradient {

namespace {

TEST(PythonLiteral, ShowsJsonAsPythonShowsADictionary) {
  EXPECT_EQ(python_literal(R"({"key":"val"})"), "{'key': 'val'}");
  EXPECT_EQ(python_literal(R"({"EPOCHS_EVAL":5,"TRAIN_EPOCHS":10})"),
            "{'EPOCHS_EVAL': 5, 'TRAIN_EPOCHS': 10}");
  EXPECT_EQ(python_literal(R"({"z":true,"a":false,"n":null,"f":0.5,"l":[1,"x",{}]})"),
            "{'z': True, 'a': False, 'n': None, 'f': 0.5, 'l': [1, 'x', {}]}");
  EXPECT_EQ(python_literal("{}"), "{}");
}

TEST(PythonLiteral, QuotesAsPythonDoes) {
  EXPECT_EQ(python_literal(R"(["it's"])"), R"(["it's"])");
  EXPECT_EQ(python_literal(R"(["it's \"so\""])"), R"(['it\'s "so"'])");
  EXPECT_EQ(python_literal(R"(["a\nb\tc\\d\u0001"])"), R"(['a\nb\tc\\d\x01'])");
  EXPECT_EQ(python_literal(R"(["Größe"])"), "['Größe']");
}

TEST(PythonLiteral, IsNothingOfWhatIsNoJson) {
  EXPECT_EQ(python_literal("{'key': 'val'}"), std::nullopt);
  EXPECT_EQ(python_literal(""), std::nullopt);
}

TEST(PythonLiteral, ShowsATableOfTexts) {
  EXPECT_EQ(python_literal(std::map<std::string, std::string>{{"A", "1"}, {"B", "x'y"}}),
            R"({'A': '1', 'B': "x'y"})");
  EXPECT_EQ(python_literal(std::map<std::string, std::string>{}), "{}");
}

}  // namespace

}  // namespace muster::dialects::gradient
