#include "cli/log_printer.h"

#include <gtest/gtest.h>

namespace muster::cli {
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

LogRecord line(const std::string& task, const std::string& text, bool continues = false) {
  return {.time = {}, .task = task, .host = task, .text = text, .continues = continues};
}

TEST(LogPrinter, NamesTheTaskOrTheRankAndItsHost) {
  LogRecord of_rank = line("launcher", "epoch 1");
  of_rank.rank = 3;
  of_rank.host = "dist-worker-1";

  EXPECT_EQ(printed({line("launcher", "hello"), of_rank}),
            "[launcher] hello\n[3@dist-worker-1] epoch 1\n");
}

TEST(LogPrinter, MarksMustersOwnWords) {
  LogRecord notice = line("worker-0", "the disk is full");
  notice.stream = LogStream::kNotice;

  EXPECT_EQ(printed({notice}), "[worker-0] muster: the disk is full\n");
}

TEST(LogPrinter, LeavesOutThePrefixAndAddsTheTimeWhenAsked) {
  LogRecord record = line("main", "x");
  record.time = base::Time(std::chrono::seconds(1'700'000'000));

  EXPECT_EQ(printed({record}, {.prefix = false}), "x\n");
  EXPECT_EQ(printed({record}, {.prefix = true, .timestamps = true}),
            "2023-11-14T22:13:20.000Z [main] x\n");
}

TEST(LogPrinter, JoinsThePiecesOfALongLine) {
  EXPECT_EQ(printed({line("a", "one ", true), line("a", "two ", true), line("a", "three")}),
            "[a] one two three\n");
}

TEST(LogPrinter, EndsAnOpenLineBeforeAnotherSourcePrintsAndNamesTheFirstAgain) {
  EXPECT_EQ(printed({line("a", "one ", true), line("b", "other"), line("a", "two")}),
            "[a] one \n[b] other\n[a] two\n");
}

TEST(LogPrinter, EndsAnOpenLineAtTheEnd) {
  EXPECT_EQ(printed({line("a", "cut", true)}), "[a] cut\n");
}

TEST(LogPrinter, PassesEveryByteToAFile) {
  const std::string bytes("\x1b[2J\0\xff\x9b\r", 8);

  EXPECT_EQ(printed({line("a", bytes)}, {.prefix = false}), bytes + "\n");
}

TEST(LogPrinter, ShowsControlCharactersOnATerminalInsteadOfObeyingThem) {
  const std::string text =
      "\x1b]0;title\a 50%\r\t\x7f \xc3\xa9 \xc2\x9b"
      "31m";

  EXPECT_EQ(printed({line("a", text)}, {.prefix = false}, kPlainTerminal),
            "\\x1b]0;title\\x07 50%\r\t\\x7f \xc3\xa9 \xc2\\x9b"
            "31m\n");
}

TEST(LogPrinter, ShowsAControlCharacterThatIsCutBetweenTwoPieces) {
  EXPECT_EQ(
      printed({line("a", "\xc2", true), line("a", "\x9b")}, {.prefix = false}, kPlainTerminal),
      "\xc2\\x9b\n");
}

TEST(LogPrinter, ColoursEachPrefixAlikeInEveryRun) {
  const std::string once = printed({line("worker-0", "x")}, {}, kColourTerminal);

  EXPECT_TRUE(once.starts_with("\x1b[3"));
  EXPECT_TRUE(once.ends_with("[worker-0]\x1b[0m x\n"));
  EXPECT_EQ(printed({line("worker-0", "x")}, {}, kColourTerminal), once);
}

}  // namespace
}  // namespace muster::cli
