#include "cli/log_cursor.h"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

job::LogRecord record(const std::string& task, int at, const std::string& text = "") {
  return {.time = base::Time(std::chrono::seconds(at)), .task = task, .text = text};
}

/// The texts that get through.
std::string seen(LogCursor& cursor, const std::vector<job::LogRecord>& records) {
  std::string texts;
  for (const job::LogRecord& each : records) {
    if (cursor.advance(each)) texts += each.text;
  }
  return texts;
}

TEST(LogCursor, LetsAllThroughWhereNothingBrokeOff) {
  LogCursor cursor;
  EXPECT_EQ(seen(cursor, {record("a", 2, "1"), record("a", 1, "2"), record("b", 0, "3")}), "123");
}

TEST(LogCursor, PassesOverExactlyWhatWasSeenAfterAResume) {
  const std::vector<job::LogRecord> all{
      record("a", 1, "A"), record("b", 1, "B"), record("a", 2, "C"), record("a", 2, "D"),
      record("b", 1, "E"), record("a", 2, "F"), record("c", 0, "G"), record("b", 3, "H")};
  for (size_t cut = 0; cut <= all.size(); ++cut) {
    LogCursor cursor;
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(cut);
    std::string texts = seen(cursor, {all.begin(), middle});
    const job::LogQuery query = cursor.resume({.follow = true});
    texts += seen(cursor, all);
    EXPECT_EQ(texts, "ABCDEFGH") << "cut after " << cut;
    EXPECT_EQ(query.since, std::nullopt);
  }
}

TEST(LogCursor, SurvivesASecondBreakInTheMiddleOfWhatComesAgain) {
  LogCursor cursor;
  seen(cursor, {record("a", 1), record("a", 1), record("a", 2)});
  static_cast<void>(cursor.resume({}));
  seen(cursor, {record("a", 1)});
  static_cast<void>(cursor.resume({}));

  EXPECT_EQ(seen(cursor, {record("a", 1, "x"), record("a", 1, "x"), record("a", 2, "x"),
                          record("a", 2, "new")}),
            "new");
}

TEST(LogCursor, TurnsATailIntoTheTimeOfItsFirstRecord) {
  LogCursor cursor;
  seen(cursor, {record("a", 5), record("a", 6)});

  const job::LogQuery query = cursor.resume({.follow = true, .task = {}, .since = {}, .tail = 2});

  EXPECT_EQ(query.tail, std::nullopt);
  EXPECT_EQ(query.since, base::Time(std::chrono::seconds(5)));
}

}  // namespace
}  // namespace muster::cli
