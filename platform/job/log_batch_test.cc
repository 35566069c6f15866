#include "job/log_batch.h"

#include <gtest/gtest.h>

namespace muster::job {
namespace {

const base::Time kTime{std::chrono::seconds(1'700'000'000)};

LogBatch::Source source_of(const std::string& task, std::optional<int> rank = {}) {
  return std::make_shared<const LogSource>(
      LogSource{.task = task, .attempt = 2, .host = "h-" + task, .rank = rank});
}

/// "task:text" of each record, "…" at the end where its line goes on.
std::vector<std::string> lines_of(const LogBatch& batch) {
  std::vector<std::string> lines;
  for (const LogRecord& record : records_of(batch)) {
    lines.push_back(record.task + ":" + record.text + (record.continues ? "…" : ""));
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(LogBatch, GivesBackTheLinesOfEachSourceInTheirOrder) {
  const auto a = source_of("a");
  const auto b = source_of("b");
  LogBatch batch;
  batch.add(a, kTime, "one\ntwo\n");
  batch.add(b, kTime, "half");
  batch.add(a, kTime, "\n");
  batch.add(b, kTime, " whole\n");

  EXPECT_EQ(lines_of(batch), (Lines{"a:one", "a:two", "b:half…", "a:", "b: whole"}));
  EXPECT_EQ(batch.sources().size(), 2U);
}

TEST(LogBatch, GivesRecordsAllThatIsKnownOfTheirSource) {
  LogBatch batch;
  batch.add(source_of("worker-1", 3), kTime, "line\n");

  EXPECT_EQ(records_of(batch), std::vector<LogRecord>{(LogRecord{.time = kTime,
                                                                 .task = "worker-1",
                                                                 .attempt = 2,
                                                                 .host = "h-worker-1",
                                                                 .rank = 3,
                                                                 .text = "line"})});
}

TEST(LogBatch, KeepsLinesOfOneSourceAndTimeTogetherAndNothingElse) {
  const auto a = source_of("a");
  LogBatch batch;
  batch.add(a, kTime, "1\n");
  batch.add(a, kTime, "2\n");
  EXPECT_EQ(batch.runs().size(), 1U);

  batch.add(a, kTime + std::chrono::nanoseconds(1), "3\n");
  EXPECT_EQ(batch.runs().size(), 2U);
  batch.add(a, kTime + std::chrono::nanoseconds(1), "4");
  EXPECT_EQ(batch.runs().size(), 3U);
  batch.add(a, kTime + std::chrono::nanoseconds(1), "5\n");
  EXPECT_EQ(batch.runs().size(), 4U);
  EXPECT_EQ(lines_of(batch), (Lines{"a:1", "a:2", "a:3", "a:4…", "a:5"}));
}

TEST(LogBatch, HoldsNothingOnceItIsCleared) {
  LogBatch batch;
  batch.add(source_of("a"), kTime, "1\n");
  batch.clear();
  batch.add(source_of("b"), kTime, "");

  EXPECT_TRUE(batch.empty());
  EXPECT_TRUE(records_of(batch).empty());
}

}  // namespace
}  // namespace muster::job
