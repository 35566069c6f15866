#include "dialects/gradient/ascii_table.h"

#include <gtest/gtest.h>

namespace muster::dialects::gradient {

namespace {

TEST(AsciiTable, DrawsAListAsGradientDoes) {
  AsciiTable table;
  table.add({"Name", "ID", "Status"});
  table.add({"dsfads", "ea2lfbbpdyzsq", "pending"});
  table.add({"dsfads", "ea2lfbbpdyzsq", "pending"});

  EXPECT_EQ(table.to_string(),
            "+--------+---------------+---------+\n"
            "| Name   | ID            | Status  |\n"
            "+--------+---------------+---------+\n"
            "| dsfads | ea2lfbbpdyzsq | pending |\n"
            "| dsfads | ea2lfbbpdyzsq | pending |\n"
            "+--------+---------------+---------+\n");
}

TEST(AsciiTable, HasItsRuleBelowTheFirstRowOfKeysAndValues) {
  AsciiTable table;
  table.add({"Name", "dsfads"});
  table.add({"Ports", "5000"});
  table.add({"Model Type", std::nullopt});

  EXPECT_EQ(table.to_string(),
            "+------------+--------+\n"
            "| Name       | dsfads |\n"
            "+------------+--------+\n"
            "| Ports      | 5000   |\n"
            "| Model Type | None   |\n"
            "+------------+--------+\n");
}

TEST(AsciiTable, HasItsTitleOnTheUpperBorder) {
  AsciiTable table("Experiment e1 logs");
  table.add({"JOB ID", "LINE", "MESSAGE"});
  table.add({"e1", "1", "epoch 1"});

  EXPECT_EQ(table.to_string(),
            "+Experiment e1 logs-------+\n"
            "| JOB ID | LINE | MESSAGE |\n"
            "+--------+------+---------+\n"
            "| e1     | 1    | epoch 1 |\n"
            "+--------+------+---------+\n");
}

TEST(AsciiTable, OmitsATitleWiderThanTheTable) {
  AsciiTable table("much wider");
  table.add({"A"});
  EXPECT_EQ(table.to_string(), "+---+\n| A |\n+---+\n");
}

TEST(AsciiTable, GivesACellAsManyLinesAsItsText) {
  AsciiTable table;
  table.add({"Name", "dist"});
  table.add({"Master Command", "mpirun\n  python train.py\n"});

  EXPECT_EQ(table.to_string(),
            "+----------------+-------------------+\n"
            "| Name           | dist              |\n"
            "+----------------+-------------------+\n"
            "| Master Command | mpirun            |\n"
            "|                |   python train.py |\n"
            "+----------------+-------------------+\n");
}

TEST(AsciiTable, EscapesControlCharacters) {
  AsciiTable table("a\x1b]0;b\a");
  table.add({"Name"});
  table.add({"red \x1b[31m\ttab\rback and more of it"});

  EXPECT_EQ(table.to_string(),
            "+a\\x1b]0;b\\x07-------------------------+\n"
            "| Name                                 |\n"
            "+--------------------------------------+\n"
            "| red \\x1b[31m tab back and more of it |\n"
            "+--------------------------------------+\n");
}

TEST(AsciiTable, CountsCharactersNotBytes) {
  AsciiTable table;
  table.add({"Größe", "x"});
  table.add({"abcde", "y"});
  EXPECT_EQ(table.to_string(),
            "+-------+---+\n"
            "| Größe | x |\n"
            "+-------+---+\n"
            "| abcde | y |\n"
            "+-------+---+\n");
}

TEST(AsciiTable, ColoursColumnsExceptTheirFirstRowOnRequest) {
  AsciiTable table;
  table.set_colour(1, kRed);
  table.add({"A", "B"});
  table.add({"a", "b"});

  EXPECT_EQ(table.to_string(true),
            "+---+---+\n| A | B |\n+---+---+\n| a | \x1b[31mb\x1b[0m |\n+---+---+\n");
  EXPECT_EQ(table.to_string().find('\x1b'), std::string::npos);
}

TEST(AsciiTable, IsEmptyWithoutRows) {
  EXPECT_EQ(AsciiTable("title").to_string(), "");
}

}  // namespace

}  // namespace muster::dialects::gradient
