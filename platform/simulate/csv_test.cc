#include "simulate/csv.h"

#include <gtest/gtest.h>

namespace muster::simulate {
namespace {

TEST(Csv, FindsColumnsByNameInAnyOrder) {
  const auto table = parse_csv("b, a\n1,x\n2, y \n", "the list", {"a", "b"});

  ASSERT_TRUE(table);
  ASSERT_EQ(table->rows.size(), 2U);
  std::vector<base::Fault> faults;
  EXPECT_EQ(table->text(table->rows[1], "a"), "y");
  EXPECT_EQ(table->whole(table->rows[1], "b", {}, faults), 2);
  EXPECT_EQ(table->text(table->rows[1], "c"), "");
  EXPECT_TRUE(faults.empty());
}

TEST(Csv, ReadsQuotesEmptyCellsAndForeignLineEnds) {
  const auto table = parse_csv(
      "\xEF\xBB\xBFname,note,rest\r\n\"a \"\"b\"\", c\",,\r\n\r\nd,\"two\nlines\",x\r\ne,,",
      "the list", {"name"});

  ASSERT_TRUE(table);
  const std::vector<CsvRow> expected = {
      {2, {"a \"b\", c", "", ""}}, {4, {"d", "two\nlines", "x"}}, {6, {"e", "", ""}}};
  EXPECT_EQ(table->rows, expected);
}

TEST(Csv, NamesEveryFaultWithItsLine) {
  const auto table =
      parse_csv("gpus,names\n1,a,b\n2,b\n3\n4,\"open\n", "the list", {"gpu", "name"});

  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().what, "the list cannot be used: 5 faults");
  const std::vector<base::Fault> expected = {
      {"gpu", "the column is missing; there is one named gpus", 1},
      {"name", "the column is missing; there is one named names", 1},
      {"", "has 3 cells where the first row names 2 columns", 2},
      {"", "has 1 cells where the first row names 2 columns", 4},
      {"", "a quote is opened and never closed", 5}};
  EXPECT_EQ(table.error().faults, expected);
}

TEST(Csv, SaysWhichCellIsNoNumberOrOutOfRange) {
  const auto table =
      parse_csv("gpus,days\n1,0.5\nmany,-1\n65,1e999\n,nan\n-1,2x\n", "the list", {});
  ASSERT_TRUE(table);

  std::vector<base::Fault> faults;
  int64_t sum = 0;
  double days = 0;
  for (const CsvRow& row : table->rows) {
    sum += table->whole(row, "gpus", {.least = 0, .most = 64}, faults);
    days += table->decimal(row, "days", faults);
  }

  EXPECT_EQ(sum, 1);
  EXPECT_EQ(days, 0.5);
  const std::vector<base::Fault> expected = {
      {"gpus", "'many' is not a whole number from 0 to 64", 3},
      {"days", "'-1' is not a number of at least 0", 3},
      {"gpus", "'65' is not a whole number from 0 to 64", 4},
      {"days", "'1e999' is not a number of at least 0", 4},
      {"gpus", "'' is not a whole number from 0 to 64", 5},
      {"days", "'nan' is not a number of at least 0", 5},
      {"gpus", "'-1' is not a whole number from 0 to 64", 6},
      {"days", "'2x' is not a number of at least 0", 6}};
  EXPECT_EQ(faults, expected);
}

TEST(Csv, AnEmptyTextMissesItsColumns) {
  const auto table = parse_csv("", "the list", {"gpu"});

  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().faults.front().what, "the column is missing");
}

}  // namespace
}  // namespace muster::simulate
