#include <gtest/gtest.h>

#include "cli/logs/log_printer.h"
#include "cli/logs/test_log_lines.h"

namespace muster::cli::logs {

namespace {

using job::LogRecord;

LogRecord of_rank(int rank, const std::string& text) {
  LogRecord record = log_line("launcher", text);
  record.rank = rank;
  record.host = "w" + std::to_string(rank);
  return record;
}

class Folded : public testing::Test {
 protected:
  std::string print(const std::vector<LogRecord>& records) {
    std::string out;
    for (const LogRecord& record : records) fold_.print(record, out);
    return out;
  }
  std::string tell() {
    std::string out;
    fold_.tell(out);
    return out;
  }

  LogPrinter printer_{{}, {.is_terminal = true, .colour = false}};
  LogFold fold_{printer_};
};

TEST_F(Folded, ALineIsShownAtOnceAndCountedWhenSomethingElseComes) {
  EXPECT_EQ(print({log_line("a", "warning")}), "[a] warning\n");
  EXPECT_EQ(print(std::vector<LogRecord>(41, log_line("a", "warning"))), "");
  EXPECT_TRUE(fold_.holds());
  EXPECT_EQ(print({log_line("a", "done")}), "[a] ... (repeated 41 times)\n[a] done\n");
  EXPECT_FALSE(fold_.holds());
}

TEST_F(Folded, TheSameLineOfSeveralRanksIsOne) {
  std::vector<LogRecord> records;
  for (const int rank : {0, 1, 2, 3, 7}) records.push_back(of_rank(rank, "WARNING"));

  EXPECT_EQ(print(records), "[0@w0] WARNING\n");
  EXPECT_EQ(tell(), "[0-3,7] ... (repeated 4 times)\n");
}

TEST_F(Folded, TheSameLineOfSeveralTasksNamesThem) {
  print({log_line("worker-0", "x"), log_line("worker-1", "x"), log_line("worker-1", "x")});

  EXPECT_EQ(tell(), "[worker-0, worker-1] ... (repeated 2 times)\n");
}

TEST_F(Folded, OneRepetitionIsShownAsItIs) {
  EXPECT_EQ(print({of_rank(0, "x"), of_rank(1, "x"), of_rank(1, "y")}),
            "[0@w0] x\n[1@w1] x\n[1@w1] y\n");
}

TEST_F(Folded, WhatWasToldIsCountedAnewAndNotShownAgain) {
  print(std::vector<LogRecord>(4, log_line("a", "x")));
  EXPECT_EQ(tell(), "[a] ... (repeated 3 times)\n");
  EXPECT_EQ(tell(), "");

  EXPECT_EQ(print(std::vector<LogRecord>(2, log_line("a", "x"))), "");
  EXPECT_EQ(tell(), "[a] ... (repeated 2 times)\n");
}

TEST_F(Folded, OtherStreamsBlankLinesAndPiecesAreNot) {
  LogRecord error = log_line("a", "x");
  error.stream = job::LogStream::kError;
  EXPECT_EQ(print({log_line("a", "x"), error}), "[a] x\n[a] x\n");
  EXPECT_EQ(print({log_line("b", ""), log_line("b", "")}), "[b] \n[b] \n");

  LogRecord piece = log_line("c", "x");
  piece.continues = true;
  EXPECT_EQ(print({piece, log_line("c", "x"), log_line("c", "x"), log_line("c", "y")}),
            "[c] xx\n[c] x\n[c] y\n");
}

TEST_F(Folded, ABlankLineBetweenEndsTheCount) {
  EXPECT_EQ(print({log_line("a", "x"), log_line("a", "x"), log_line("a", "x"), log_line("a", "")}),
            "[a] x\n[a] ... (repeated 2 times)\n[a] \n");
}

}  // namespace

}  // namespace muster::cli::logs
