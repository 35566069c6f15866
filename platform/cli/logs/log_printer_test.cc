#include "cli/logs/log_printer.h"

#include <gtest/gtest.h>

#include <set>

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

TEST(LogPrinter, NamesTheTaskOrTheRankWithItsHost) {
  LogRecord of_rank = log_line("launcher", "epoch 1");
  of_rank.rank = 3;
  of_rank.host = "dist-worker-1";

  EXPECT_EQ(printed({log_line("launcher", "hello"), of_rank}),
            "[launcher] hello\n[3@dist-worker-1] epoch 1\n");
  of_rank.host.clear();
  EXPECT_EQ(printed({of_rank}), "[3] epoch 1\n") << "its host is unknown";
}

TEST(LogPrinter, MarksMessagesOfMuster) {
  LogRecord notice = log_line("worker-0", "the disk is full");
  notice.stream = LogStream::kNotice;

  EXPECT_EQ(printed({notice}), "[worker-0] muster: the disk is full\n");
}

TEST(LogPrinter, OmitsThePrefixAndAddsTheTimeOnRequest) {
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

TEST(LogPrinter, HoldsThePiecesOfALineInAPipeUntilItsNewline) {
  EXPECT_EQ(printed({log_line("a", "one ", true), log_line("b", "other"), log_line("b", "on", true),
                     log_line("a", "two"), log_line("b", "e")}),
            "[b] other\n[a] one two\n[b] one\n");
  LogRecord other_stream = log_line("a", "error");
  other_stream.stream = LogStream::kError;
  EXPECT_EQ(printed({log_line("a", "one ", true), other_stream, log_line("a", "two")}),
            "[a] error\n[a] one two\n");
}

TEST(LogPrinter, AddsNoEmptyLineWhereTheLastLineOfASourceEndsLate) {
  EXPECT_EQ(printed({log_line("a", "no newline", true), log_line("b", "x"), log_line("a", "")}),
            "[b] x\n[a] no newline\n");
}

class Held : public testing::Test {
 protected:
  std::string print(const LogRecord& record) {
    std::string out;
    printer_.print(record, out);
    return out;
  }
  std::string release() {
    std::string out;
    printer_.release(out);
    return out;
  }

  LogPrinter printer_{{}, kFile};
};

TEST_F(Held, PiecesArePrintedWhenTheyAreFoundTwice) {
  EXPECT_FALSE(printer_.holds());
  EXPECT_EQ(print(log_line("a", "name? ", true)), "");
  EXPECT_TRUE(printer_.holds());
  EXPECT_EQ(release(), "");
  EXPECT_EQ(print(log_line("b", "age? ", true)), "");
  EXPECT_EQ(release(), "[a] name? ");
  EXPECT_EQ(print(log_line("a", "Ada", true)), "Ada") << "nothing came between";
  EXPECT_EQ(release(), "\n[b] age? ");
  EXPECT_FALSE(printer_.holds());
  EXPECT_EQ(print(log_line("a", "")), "") << "its line has ended";
  EXPECT_EQ(print(log_line("b", "36")), "36\n");
}

TEST_F(Held, TheRestOfALineThatOthersHaveEndedIsALine) {
  print(log_line("a", "one ", true));
  release();
  EXPECT_EQ(release(), "[a] one ");
  EXPECT_EQ(print(log_line("b", "x")), "\n[b] x\n");
  EXPECT_EQ(print(log_line("a", "two")), "[a] two\n");
}

TEST_F(Held, ALineOfAMegabyteIsPrintedBeforeItsNewline) {
  const std::string half(LogPrinter::kMostHeldOfLine / 2, 'x');
  EXPECT_EQ(print(log_line("a", half, true)), "");
  EXPECT_EQ(print(log_line("a", half, true)), "[a] " + half + half);
  EXPECT_EQ(print(log_line("a", "end")), "end\n");
}

TEST_F(Held, AllLinesTogetherHaveABound) {
  const std::string piece(LogPrinter::kMostHeldOfLine - 1, 'x');
  const size_t most = LogPrinter::kMostHeld / piece.size();
  for (size_t i = 0; i < most; ++i) {
    EXPECT_EQ(print(log_line(std::to_string(i), piece, true)), "");
  }
  EXPECT_EQ(print(log_line("last", piece, true)), "[last] " + piece);
  EXPECT_EQ(print(log_line("0", "")), "\n[0] " + piece + "\n");
  EXPECT_EQ(print(log_line("next", piece, true)), "") << "there is room again";
}

TEST_F(Held, AnOpenLineCanBeEnded) {
  print(log_line("a", "one", true));
  std::string out;
  printer_.end_line(log_line("a", ""), out);
  printer_.end_line(log_line("b", ""), out);
  EXPECT_EQ(out, "[a] one\n");
}

TEST(LogPrinter, EndsAnOpenLineAtTheEnd) {
  EXPECT_EQ(printed({log_line("a", "cut", true)}), "[a] cut\n");
}

TEST(LogPrinter, PassesEveryByteToAFile) {
  const std::string bytes("\x1b[2J\0\xff\x9b\r", 8);

  EXPECT_EQ(printed({log_line("a", bytes)}, {.prefix = false}), bytes + "\n");
}

TEST(LogPrinter, EscapesControlCharactersOnATerminal) {
  const std::string text =
      "\x1b]0;title\a 50%\t\x7f \xc3\xa9 \xc2\x9b"
      "31m";

  EXPECT_EQ(printed({log_line("a", text)}, {.prefix = false}, kPlainTerminal),
            "\\x1b]0;title\\x07 50%\t\\x7f \xc3\xa9 \\u009b"
            "31m\n");
}

TEST(LogPrinter, EscapesAControlCharacterThatIsSplitBetweenTwoPieces) {
  EXPECT_EQ(printed({log_line("a", "\xc2", true), log_line("a", "\x9b")}, {.prefix = false},
                    kPlainTerminal),
            "\\u009b\n");
}

TEST(JsonOfALogLine, EscapesEveryControlCharacterOnATerminalAndOnlyC0InAFile) {
  const LogRecord record = log_line("a",
                                    "\x1b\x7f \xc3\xa9 \xc2\x9b"
                                    "31m \xc2\x80");
  std::string file = "before\n";
  append_json(record, kFile, file);
  std::string terminal = "before\n";
  append_json(record, kPlainTerminal, terminal);

  EXPECT_TRUE(file.starts_with("before\n{")) << file;
  EXPECT_TRUE(file.ends_with("}\n")) << file;
  EXPECT_NE(file.find("\\u001b\x7f \xc3\xa9 \xc2\x9b"
                      "31m \xc2\x80"),
            std::string::npos)
      << file;
  EXPECT_TRUE(terminal.starts_with("before\n{")) << terminal;
  EXPECT_NE(terminal.find("\\u001b\\u007f \xc3\xa9 \\u009b31m \\u0080"), std::string::npos)
      << terminal;
}

TEST(LogPrinter, ColoursEachPrefixTheSameInEveryRun) {
  const std::string once = printed({log_line("worker-0", "x")}, {}, kColourTerminal);

  EXPECT_TRUE(once.starts_with("\x1b["));
  EXPECT_TRUE(once.ends_with("[worker-0]\x1b[0m x\n"));
  EXPECT_EQ(printed({log_line("worker-0", "x")}, {}, kColourTerminal), once);
}

TEST(LogPrinter, PassesAProgramsColoursToATerminalWithColours) {
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

/// The rows that a terminal shows after this output; a row that is erased remains empty.
std::vector<std::string> rows_of(const std::string& out) {
  std::vector<std::string> rows{""};
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == '\n') {
      rows.emplace_back();
    } else if (out.substr(i, 4) == "\r\x1b[K") {
      rows.back().clear();
      i += 3;
    } else {
      rows.back() += out[i];
    }
  }
  return rows;
}

TEST(LogPrinter, KeepsAnOpenLineAtTheBottomOfATerminal) {
  using Rows = std::vector<std::string>;
  LogPrinter printer({}, kPlainTerminal);
  std::string out;
  const auto rows = [&](const std::vector<LogRecord>& records) {
    for (const LogRecord& record : records) printer.print(record, out);
    return rows_of(out);
  };
  EXPECT_EQ(rows({log_line("a", "\r10%", true), log_line("b", "x")}), (Rows{"[b] x", "[a] 10%"}));
  EXPECT_EQ(rows({log_line("b", "\r50%", true)}), (Rows{"[b] x", "[b] 50%"}));
  EXPECT_EQ(rows({log_line("a", "\r20%", true)}), (Rows{"[b] x", "[a] 20%"}));
  EXPECT_EQ(rows({log_line("a", " of 9", true)}), (Rows{"[b] x", "[a] 20% of 9"}));
  EXPECT_EQ(rows({log_line("a", "")}), (Rows{"[b] x", "[a] 20% of 9", "[b] 50%"}));
  printer.note("[0-3]", "... (repeated 4 times)", out);
  EXPECT_EQ(rows({log_line("b", "\r100%")}),
            (Rows{"[b] x", "[a] 20% of 9", "[0-3] ... (repeated 4 times)", "[b] 100%", ""}));
}

TEST(LogPrinter, DoesNotEraseAnOpenLineOfSeveralRows) {
  using Rows = std::vector<std::string>;
  const Terminal narrow{.is_terminal = true, .colour = true, .columns = 10};
  const auto rows = [&](const std::string& open) {
    return rows_of(printed({log_line("a", open, true), log_line("b", "x"), log_line("a", "end")},
                           {.prefix = false}, narrow));
  };
  EXPECT_EQ(rows("123456789"), (Rows{"x", "123456789end", ""}));
  EXPECT_EQ(rows("\x1b[31mred"), (Rows{"x", "\x1b[31mredend\x1b[0m", ""})) << "three columns";
  EXPECT_EQ(rows("1234567890"), (Rows{"1234567890", "x", "end", ""}));
  EXPECT_EQ(rows("1234\t"), (Rows{"1234\t", "x", "end", ""})) << "a tab may fill eight columns";
  EXPECT_EQ(rows("12345678\u2705"), (Rows{"12345678\u2705", "x", "end", ""}));
  EXPECT_EQ(printed({log_line("a", "12345678\xe3\x81", true), log_line("b", "x")},
                    {.prefix = false}, narrow),
            "12345678\r\x1b[Kx\n12345678\\xe3\\x81\n")
      << "an incomplete character is not shown to be erased";
}

TEST(LogPrinter, FollowsTheWidthOfTheTerminal) {
  LogPrinter printer({.prefix = false}, kPlainTerminal);
  std::string out;
  printer.print(log_line("a", "1234567890", true), out);
  printer.resize(10);
  printer.print(log_line("b", "x"), out);
  EXPECT_EQ(out, "1234567890\nx\n");
}

}  // namespace

namespace {

std::string_view colour(const std::string& task, std::optional<int> rank = std::nullopt) {
  return colour_of({.task = task, .rank = rank});
}

TEST(LogColour, IsSharedByTwoTasksOnlyIfAllColoursAreInUse) {
  std::set<std::string_view> colours{colour("chief")};
  for (int i = 0; i < 6; ++i) colours.insert(colour("worker-" + std::to_string(i)));
  for (int i = 0; i < 3; ++i) colours.insert(colour("ps-" + std::to_string(i)));

  EXPECT_EQ(colours.size(), 10U);
}

TEST(LogColour, DiffersBetweenRanksAndTheirLauncherAndBetweenNeighbouringRanks) {
  std::set<std::string_view> colours{colour("launcher")};
  for (int rank = 0; rank < 9; ++rank) colours.insert(colour("worker-0", rank));

  EXPECT_EQ(colours.size(), 10U);
}

TEST(LogColour, IsDefinedForAnyNameAndAnyNumber) {
  for (const std::string name : {"", "worker-", "worker--1", "worker-99999999999999999999", "x"}) {
    EXPECT_TRUE(colour(name).starts_with("\x1b["));
    EXPECT_EQ(colour(name), colour(name));
  }
  EXPECT_TRUE(colour("launcher", 2147483647).starts_with("\x1b["));
}

}  // namespace

namespace {

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
  std::string print_count() {
    std::string out;
    fold_.print_count(out);
    return out;
  }

  LogPrinter printer_{{}, {.is_terminal = true, .colour = false}};
  LogFold fold_{printer_};
};

TEST_F(Folded, RepeatedLineIsPrintedOnceAndCountedWhenAnotherLineFollows) {
  EXPECT_EQ(print({log_line("a", "warning")}), "[a] warning\n");
  EXPECT_EQ(print(std::vector<LogRecord>(41, log_line("a", "warning"))), "");
  EXPECT_TRUE(fold_.holds());
  EXPECT_EQ(print({log_line("a", "done")}), "[a] ... (repeated 41 times)\n[a] done\n");
  EXPECT_FALSE(fold_.holds());
}

TEST_F(Folded, EqualLinesOfSeveralRanksAreOneLine) {
  std::vector<LogRecord> records;
  for (const int rank : {0, 1, 2, 3, 7}) records.push_back(of_rank(rank, "WARNING"));

  EXPECT_EQ(print(records), "[0@w0] WARNING\n");
  EXPECT_EQ(print_count(), "[0-3,7] ... (repeated 4 times)\n");
}

TEST_F(Folded, EqualLinesOfSeveralTasksAreOneLineWithTheirNames) {
  print({log_line("worker-0", "x"), log_line("worker-1", "x"), log_line("worker-1", "x")});

  EXPECT_EQ(print_count(), "[worker-0, worker-1] ... (repeated 2 times)\n");
}

TEST_F(Folded, SingleRepetitionIsPrintedAsItIs) {
  EXPECT_EQ(print({of_rank(0, "x"), of_rank(1, "x"), of_rank(1, "y")}),
            "[0@w0] x\n[1@w1] x\n[1@w1] y\n");
}

TEST_F(Folded, CountRestartsAfterItWasPrinted) {
  print(std::vector<LogRecord>(4, log_line("a", "x")));
  EXPECT_EQ(print_count(), "[a] ... (repeated 3 times)\n");
  EXPECT_EQ(print_count(), "");

  EXPECT_EQ(print(std::vector<LogRecord>(2, log_line("a", "x"))), "");
  EXPECT_EQ(print_count(), "[a] ... (repeated 2 times)\n");
}

TEST_F(Folded, OtherStreamsBlankLinesAndPiecesAreNotFolded) {
  LogRecord error = log_line("a", "x");
  error.stream = job::LogStream::kError;
  EXPECT_EQ(print({log_line("a", "x"), error}), "[a] x\n[a] x\n");
  EXPECT_EQ(print({log_line("b", ""), log_line("b", "")}), "[b] \n[b] \n");

  LogRecord piece = log_line("c", "x");
  piece.continues = true;
  EXPECT_EQ(print({piece, log_line("c", "x"), log_line("c", "x"), log_line("c", "y")}),
            "[c] xx\n[c] x\n[c] y\n");
}

TEST_F(Folded, TheEndOfALineIsNoRepetitionOfTheLineOfAnotherSource) {
  LogRecord piece = log_line("a", "step 1 ... ");
  piece.continues = true;
  print({piece, log_line("b", "done"), log_line("a", "done")});
  EXPECT_FALSE(fold_.holds());
}

TEST_F(Folded, BlankLineInBetweenEndsTheCount) {
  EXPECT_EQ(print({log_line("a", "x"), log_line("a", "x"), log_line("a", "x"), log_line("a", "")}),
            "[a] x\n[a] ... (repeated 2 times)\n[a] \n");
}

}  // namespace

namespace {

std::string shown(const std::vector<std::string>& pieces, bool colour = true) {
  LogText text(colour);
  std::string out;
  for (const std::string& piece : pieces) text.append(piece, out);
  text.finish(out);
  return out;
}

TEST(LogText, PassesColoursAndResetsThem) {
  EXPECT_EQ(shown({"\x1b[1;31merror\x1b[0m: x"}), "\x1b[1;31merror\x1b[0m: x\x1b[0m");
  EXPECT_EQ(shown({"\x1b[38;2;1;2;3mx"}), "\x1b[38;2;1;2;3mx\x1b[0m");
  EXPECT_EQ(shown({"plain"}), "plain");
}

TEST(LogText, RemovesColoursForATerminalWithoutColours) {
  EXPECT_EQ(shown({"\x1b[31merror\x1b[0m"}, false), "error");
}

TEST(LogText, RemovesSequencesThatMoveTheCursorOrErase) {
  EXPECT_EQ(shown({"a\x1b[2K\x1b[1Ab\x1b[10;20Hc\x1b[?25ld\x1b[2J"}), "abcd");
}

TEST(LogText, EscapesEveryOtherControlCharacter) {
  EXPECT_EQ(shown({"\x1b]0;title\a"}), "\\x1b]0;title\\x07");
  EXPECT_EQ(shown({"\x1b"
                   "c\x1bP1$r\x1b\\"}),
            "\\x1bc\\x1bP1$r\\x1b\\");
  EXPECT_EQ(shown({"\x1b[5n\x1b[6c\x1b[21t"}), "\\x1b[6c\\x1b[21t");
  EXPECT_EQ(shown({"\x1b[>4;2m"}), "\\x1b[>4;2m");
  EXPECT_EQ(shown({"\b\x7f\xc2\x9b"}), "\\x08\\x7f\\u009b");
}

TEST(LogText, EscapesInvalidUtf8AndBidirectionalControls) {
  EXPECT_EQ(shown({"\x9b"
                   "31m \xff \xe2\x82 \xc3"}),
            "\\x9b31m \\xff \\xe2\\x82 \\xc3");
  EXPECT_EQ(shown({"a\u202eb\u2066c\u200fd\u061ce"}), "a\\u202eb\\u2066c\\u200fd\\u061ce");
  EXPECT_EQ(shown({"\u00e9 \u4e2d \U0001f600"}), "\u00e9 \u4e2d \U0001f600");
  EXPECT_EQ(shown({"\xc3\x1b[31mx"}), "\\xc3\x1b[31mx\x1b[0m");
}

TEST(LogText, RemovesSequencesThatHideText) {
  EXPECT_EQ(shown({"\x1b[8mx"}), "x");
  EXPECT_EQ(shown({"\x1b[31;08mx"}), "x");
  EXPECT_EQ(shown({"\x1b[38;5;8mx"}), "\x1b[38;5;8mx\x1b[0m");
  EXPECT_EQ(shown({"\x1b[38;2;8;8;8mx"}), "\x1b[38;2;8;8;8mx\x1b[0m");
}

TEST(LogText, GivesTheSameResultHoweverTheTextIsSplit) {
  const std::string text =
      "\u202e\u4e2d\xe2 a\x1b[31mred\x1b[0m \x1b[2K\x1b]0;t\a \xc2\x9b"
      "b";
  const std::string whole = shown({text});
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(shown({text.substr(0, cut), text.substr(cut)}), whole) << cut;
  }
}

TEST(LogText, PrintsASequenceThatNeverEnds) {
  EXPECT_EQ(shown({"\x1b[12"}), "\\x1b[12");
  EXPECT_EQ(shown({"\x1b"}), "\\x1b");
  EXPECT_EQ(shown({"\x1b[" + std::string(100, '1')}), "\\x1b[" + std::string(100, '1'));
  EXPECT_EQ(shown({"\x1b[\x1b[31mx"}), "\\x1b[\x1b[31mx\x1b[0m");
}

}  // namespace

}  // namespace muster::cli::logs
