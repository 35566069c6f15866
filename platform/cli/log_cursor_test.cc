#include "cli/log_cursor.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::cli {
namespace {

using Records = std::vector<job::LogRecord>;

job::LogRecord line(const std::string& task, const std::string& text, int attempt = 1) {
  return {.task = task, .attempt = attempt, .text = text};
}

job::LogRecord piece(const std::string& task, const std::string& text) {
  job::LogRecord record = line(task, text);
  record.continues = true;
  return record;
}

/// The texts that get through; a line's end as '|'.
std::string seen(LogCursor& cursor, const Records& records) {
  std::string texts;
  for (const job::LogRecord& each : records) {
    const job::LogRecord* const fresh = cursor.unseen(each);
    if (fresh != nullptr) texts += fresh->text + (fresh->continues ? "" : "|");
  }
  return texts;
}

TEST(LogCursor, LetsAllThroughWhereNothingBrokeOff) {
  LogCursor cursor;
  EXPECT_EQ(seen(cursor, {line("a", "1"), line("a", "1"), line("b", "")}), "1|1||");
  EXPECT_EQ(cursor.place(), "");
}

TEST(LogCursor, PassesOverExactlyWhatWasSeenAfterARestart) {
  const Records all{line("a", "A"), line("b", "B"), line("a", "C"),    line("a", "C"),
                    line("b", "E"), line("a", "F"), line("c", "G", 2), line("c", "G", 1)};
  for (size_t cut = 0; cut <= all.size(); ++cut) {
    LogCursor cursor;
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(cut);
    std::string texts = seen(cursor, {all.begin(), middle});
    cursor.restart();
    texts += seen(cursor, all);
    EXPECT_EQ(texts, "A|B|C|C|E|F|G|G|") << "cut after " << cut;
  }
}

TEST(LogCursor, DoesNotCareWhereTheBytesAreCutIntoRecords) {
  LogCursor cursor;
  EXPECT_EQ(seen(cursor, {line("a", "one"), piece("a", "tw"), piece("b", "x")}), "one|twx");
  cursor.restart();

  EXPECT_EQ(seen(cursor, {piece("a", "o"), line("a", "ne"), line("b", "xyz"), line("a", "two")}),
            "yz|o|");
}

TEST(LogCursor, EndsALineThatWasSeenButForItsEnd) {
  LogCursor cursor;
  seen(cursor, {piece("a", "one")});
  cursor.restart();

  EXPECT_EQ(seen(cursor, {line("a", "one")}), "|");
}

TEST(LogCursor, SurvivesASecondBreakInTheMiddleOfWhatComesAgain) {
  LogCursor cursor;
  seen(cursor, {line("a", "1"), line("a", "1"), line("a", "2")});
  cursor.restart();
  seen(cursor, {line("a", "1")});
  cursor.restart();

  EXPECT_EQ(seen(cursor, {line("a", "1"), line("a", "1"), line("a", "2"), line("a", "2")}), "2|");
}

TEST(LogCursor, ForgetsWhatStandsInFrontOfAPlace) {
  LogCursor cursor;
  seen(cursor, {line("a", "1")});
  cursor.reach("p1");
  seen(cursor, {line("a", "2")});
  cursor.restart();

  EXPECT_EQ(cursor.place(), "p1");
  EXPECT_EQ(seen(cursor, {line("a", "2"), line("a", "3")}), "3|");
}

TEST(LogCursor, RemembersWhatItSawBeyondAPlaceThatIsReachedAgain) {
  LogCursor cursor;
  seen(cursor, {line("a", "1"), line("a", "2"), line("a", "3")});
  cursor.restart();
  // This time the server says the place earlier.
  seen(cursor, {line("a", "1")});
  cursor.reach("p1");
  EXPECT_EQ(seen(cursor, {line("a", "2")}), "");
  cursor.restart();

  EXPECT_EQ(seen(cursor, {line("a", "2"), line("a", "3"), line("a", "4")}), "4|");
}

}  // namespace
}  // namespace muster::cli
