#include "cli/logs/logs.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace muster::cli::logs {

namespace {

using Records = std::vector<job::LogRecord>;

job::LogRecord line_of_attempt(const std::string& task, const std::string& text, int attempt = 1) {
  return {.task = task, .attempt = attempt, .text = text};
}

job::LogRecord piece(const std::string& task, const std::string& text) {
  job::LogRecord record = line_of_attempt(task, text);
  record.continues = true;
  return record;
}

/// The texts of the unseen records, with '|' for the end of a line.
std::string seen(LogCursor& cursor, const Records& records) {
  std::string texts;
  for (const job::LogRecord& each : records) {
    const job::LogRecord* const fresh = cursor.unseen(each);
    if (fresh != nullptr) texts += fresh->text + (fresh->continues ? "" : "|");
  }
  return texts;
}

TEST(LogCursor, PassesEverythingWithoutAnInterruption) {
  LogCursor cursor;
  EXPECT_EQ(seen(cursor,
                 {line_of_attempt("a", "1"), line_of_attempt("a", "1"), line_of_attempt("b", "")}),
            "1|1||");
  EXPECT_EQ(cursor.place(), "");
}

TEST(LogCursor, SkipsExactlyTheSeenBytesAfterARestart) {
  const Records all{line_of_attempt("a", "A"),    line_of_attempt("b", "B"),
                    line_of_attempt("a", "C"),    line_of_attempt("a", "C"),
                    line_of_attempt("b", "E"),    line_of_attempt("a", "F"),
                    line_of_attempt("c", "G", 2), line_of_attempt("c", "G", 1)};
  for (size_t cut = 0; cut <= all.size(); ++cut) {
    LogCursor cursor;
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(cut);
    std::string texts = seen(cursor, {all.begin(), middle});
    cursor.restart();
    texts += seen(cursor, all);
    EXPECT_EQ(texts, "A|B|C|C|E|F|G|G|") << "cut after " << cut;
  }
}

TEST(LogCursor, GivesTheSameResultHoweverTheBytesAreSplitIntoRecords) {
  LogCursor cursor;
  EXPECT_EQ(seen(cursor, {line_of_attempt("a", "one"), piece("a", "tw"), piece("b", "x")}),
            "one|twx");
  cursor.restart();

  EXPECT_EQ(seen(cursor, {piece("a", "o"), line_of_attempt("a", "ne"), line_of_attempt("b", "xyz"),
                          line_of_attempt("a", "two")}),
            "yz|o|");
}

TEST(LogCursor, PassesTheMissingEndOfALine) {
  LogCursor cursor;
  seen(cursor, {piece("a", "one")});
  cursor.restart();

  EXPECT_EQ(seen(cursor, {line_of_attempt("a", "one")}), "|");
}

TEST(LogCursor, SurvivesASecondInterruptionWhileBytesAreRepeated) {
  LogCursor cursor;
  seen(cursor, {line_of_attempt("a", "1"), line_of_attempt("a", "1"), line_of_attempt("a", "2")});
  cursor.restart();
  seen(cursor, {line_of_attempt("a", "1")});
  cursor.restart();

  EXPECT_EQ(seen(cursor, {line_of_attempt("a", "1"), line_of_attempt("a", "1"),
                          line_of_attempt("a", "2"), line_of_attempt("a", "2")}),
            "2|");
}

TEST(LogCursor, ForgetsTheBytesBeforeAPlace) {
  LogCursor cursor;
  seen(cursor, {line_of_attempt("a", "1")});
  cursor.reach("p1");
  seen(cursor, {line_of_attempt("a", "2")});
  cursor.restart();

  EXPECT_EQ(cursor.place(), "p1");
  EXPECT_EQ(seen(cursor, {line_of_attempt("a", "2"), line_of_attempt("a", "3")}), "3|");
}

TEST(LogCursor, RemembersBytesAfterAPositionThatIsReachedAgain) {
  LogCursor cursor;
  seen(cursor, {line_of_attempt("a", "1"), line_of_attempt("a", "2"), line_of_attempt("a", "3")});
  cursor.restart();
  // This time the server sends the place earlier.
  seen(cursor, {line_of_attempt("a", "1")});
  cursor.reach("p1");
  EXPECT_EQ(seen(cursor, {line_of_attempt("a", "2")}), "");
  cursor.restart();

  EXPECT_EQ(seen(cursor,
                 {line_of_attempt("a", "2"), line_of_attempt("a", "3"), line_of_attempt("a", "4")}),
            "4|");
}

TEST(NothingWord, NamesTheFlagsThatNoLineMatches) {
  EXPECT_EQ(no_match_text("dist", {.rank = 5}), "no line of 'dist' matches --rank 5");
  EXPECT_EQ(no_match_text("dist", {.task = "worker-1",
                                   .grep = "loss",
                                   .since = base::Time(std::chrono::seconds(1'700'000'000)),
                                   .tail = 10,
                                   .attempt = 2}),
            "no line of 'dist' matches --task worker-1 --attempt 2 --grep 'loss' --since "
            "2023-11-14T22:13:20Z");
  EXPECT_EQ(no_match_text("dist", {.tail = 10}), "") << "the job has printed nothing";
  EXPECT_EQ(no_match_text("dist", {.rank = 5, .tail = 0}), "");
}

}  // namespace

}  // namespace muster::cli::logs
