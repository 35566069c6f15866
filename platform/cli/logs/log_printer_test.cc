#include "cli/logs/log_printer.h"

#include <gtest/gtest.h>

#include "cli/logs/test_log_lines.h"

namespace muster::cli::logs {

namespace {

using job::LogRecord;
using job::LogStream;

constexpr Terminal kFile{};
constexpr Terminal kPlainTerminal{.is_terminal = true, .colour = false};
constexpr Terminal kColourTerminal{.is_terminal = true, .colour = true};

std::string printed(const std::vector<LogRecord>& records, LogLook look = {},
                    Terminal terminal = kFile) {
  LogPrinter printer(look, terminal);
  std::string out;
  for (const LogRecord& record : records) printer.print(record, out);
  printer.finish(out);
  return out;
}

TEST(LogPrinter, NamesTheTaskOrTheRankAndItsHost) {
  LogRecord of_rank = log_line("launcher", "epoch 1");
  of_rank.rank = 3;
  of_rank.host = "dist-worker-1";

  EXPECT_EQ(printed({log_line("launcher", "hello"), of_rank}),
            "[launcher] hello\n[3@dist-worker-1] epoch 1\n");
}

TEST(LogPrinter, MarksMustersOwnWords) {
  LogRecord notice = log_line("worker-0", "the disk is full");
  notice.stream = LogStream::kNotice;

  EXPECT_EQ(printed({notice}), "[worker-0] muster: the disk is full\n");
}

TEST(LogPrinter, LeavesOutThePrefixAndAddsTheTimeWhenAsked) {
  LogRecord record = log_line("main", "x");
  record.time = base::Time(std::chrono::seconds(1'700'000'000));

  EXPECT_EQ(printed({record}, {.prefix = false}), "x\n");
  EXPECT_EQ(printed({record}, {.prefix = true, .timestamps = true}),
            "2023-11-14T22:13:20.000Z [main] x\n");
}

TEST(LogPrinter, JoinsThePiecesOfALongLine) {
  EXPECT_EQ(
      printed({log_line("a", "one ", true), log_line("a", "two ", true), log_line("a", "three")}),
      "[a] one two three\n");
}

TEST(LogPrinter, EndsAnOpenLineBeforeAnotherSourcePrintsAndNamesTheFirstAgain) {
  EXPECT_EQ(printed({log_line("a", "one ", true), log_line("b", "other"), log_line("a", "two")}),
            "[a] one \n[b] other\n[a] two\n");
}

TEST(LogPrinter, EndsAnOpenLineAtTheEnd) {
  EXPECT_EQ(printed({log_line("a", "cut", true)}), "[a] cut\n");
}

TEST(LogPrinter, PassesEveryByteToAFile) {
  const std::string bytes("\x1b[2J\0\xff\x9b\r", 8);

  EXPECT_EQ(printed({log_line("a", bytes)}, {.prefix = false}), bytes + "\n");
}

TEST(LogPrinter, ShowsControlCharactersOnATerminalInsteadOfObeyingThem) {
  const std::string text =
      "\x1b]0;title\a 50%\t\x7f \xc3\xa9 \xc2\x9b"
      "31m";

  EXPECT_EQ(printed({log_line("a", text)}, {.prefix = false}, kPlainTerminal),
            "\\x1b]0;title\\x07 50%\t\\x7f \xc3\xa9 \\u009b"
            "31m\n");
}

TEST(LogPrinter, ShowsAControlCharacterThatIsCutBetweenTwoPieces) {
  EXPECT_EQ(printed({log_line("a", "\xc2", true), log_line("a", "\x9b")}, {.prefix = false},
                    kPlainTerminal),
            "\\u009b\n");
}

TEST(LogPrinter, ColoursEachPrefixAlikeInEveryRun) {
  const std::string once = printed({log_line("worker-0", "x")}, {}, kColourTerminal);

  EXPECT_TRUE(once.starts_with("\x1b["));
  EXPECT_TRUE(once.ends_with("[worker-0]\x1b[0m x\n"));
  EXPECT_EQ(printed({log_line("worker-0", "x")}, {}, kColourTerminal), once);
}

TEST(LogPrinter, LetsAProgramsColoursPassOnATerminalThatShowsThem) {
  const LogRecord record = log_line("a", "\x1b[31mred");

  EXPECT_EQ(printed({record}, {.prefix = false}, kColourTerminal), "\x1b[31mred\x1b[0m\n");
  EXPECT_EQ(printed({record}, {.prefix = false}, kPlainTerminal), "red\n");
}

TEST(LogPrinter, ShowsTheLastStateOfAProgressBar) {
  EXPECT_EQ(printed({log_line("a", "\r 10%\r 55%\r100%")}, {}, kPlainTerminal), "[a] 100%\n");
  EXPECT_EQ(printed({log_line("a", "dos line\r")}, {}, kPlainTerminal), "[a] dos line\n");
  EXPECT_EQ(printed({log_line("a", "\r\r")}, {}, kPlainTerminal), "[a] \n");
}

TEST(LogPrinter, OverwritesAProgressBarThatGrowsInPieces) {
  EXPECT_EQ(printed({log_line("a", "\r 10%", true), log_line("a", "\r 55%", true),
                     log_line("a", " done")},
                    {}, kPlainTerminal),
            "[a]  10%\r\x1b[K[a]  55% done\n");
  EXPECT_EQ(printed({log_line("a", "10%\r", true), log_line("a", "20%\r", true), log_line("a", "")},
                    {}, kPlainTerminal),
            "[a] 10%\r\x1b[K[a] 20%\n");
}

TEST(LogPrinter, BeginsAProgressBarAnewWhereAnotherPrintedMeanwhile) {
  EXPECT_EQ(printed({log_line("a", "\r10%", true), log_line("b", "x"), log_line("a", "\r20%")}, {},
                    kPlainTerminal),
            "[a] 10%\n[b] x\n[a] 20%\n");
}

}  // namespace

}  // namespace muster::cli::logs
