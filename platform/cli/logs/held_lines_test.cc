#include "cli/logs/held_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "cli/logs/test_log_lines.h"

namespace muster::cli::logs {

namespace {

using job::LogRecord;

/// Removes all held lines, as "task:text" each, with a gap of 12 lines as "task-12".
std::vector<std::string> taken(HeldLines& held) {
  std::vector<std::string> shown;
  const HeldLines::Handlers handlers{
      .on_line = [&](const LogRecord& record) { shown.push_back(record.task + ":" + record.text); },
      .on_gap = [&](const LogRecord& next,
                    uint64_t lines) { shown.push_back(next.task + "-" + std::to_string(lines)); }};
  while (!held.empty()) held.take_some(handlers);
  return shown;
}

/// The lines FIRST to LAST of a task, of 100 bytes each.
void print(HeldLines& held, const std::string& task, int first, int last) {
  for (int number = first; number <= last; ++number) {
    std::string text = std::to_string(number);
    text.resize(99, ' ');
    held.add(log_line(task, text));
  }
}

int number_in_line(const std::string& shown) {
  return std::stoi(shown.substr(shown.find(':') + 1));
}

TEST(HeldLines, KeepsTheOrderOfFewLinesOfSeveralRanks) {
  HeldLines held;
  for (const char* task : {"a", "b", "b", "a", "c", "a"}) held.add(log_line(task, "x"));
  held.add(log_line("c", "y"));

  EXPECT_EQ(taken(held),
            (std::vector<std::string>{"a:x", "b:x", "b:x", "a:x", "c:x", "a:x", "c:y"}));
  EXPECT_EQ(held.bytes(), 0U);
}

TEST(HeldLines, PassesOnEverythingOfARecord) {
  LogRecord record = log_line("launcher", "part", true);
  record.time = base::Time(std::chrono::seconds(5));
  record.host = "worker-1";
  record.attempt = 2;
  record.rank = 7;
  record.stream = job::LogStream::kError;
  LogRecord end = record;
  end.time = base::Time(std::chrono::seconds(6));
  end.text = "";
  end.continues = false;
  HeldLines held;
  held.add(record);
  held.add(end);

  std::vector<LogRecord> records;
  held.take_some(
      {.on_line = [&](const LogRecord& each) { records.push_back(each); }, .on_gap = {}});

  EXPECT_EQ(records, (std::vector<LogRecord>{record, end}));
  EXPECT_TRUE(held.empty());
}

TEST(HeldLines, ALineWaitsForAboutOneRoundOfARankThatPrintsMuch) {
  HeldLines held;
  print(held, "flood", 1, 20'000);
  held.add(log_line("quiet", "here"));
  print(held, "flood", 20'001, 30'000);

  const std::vector<std::string> shown = taken(held);

  ASSERT_EQ(shown.size(), 30'001U);
  const auto place = std::find(shown.begin(), shown.end(), "quiet:here") - shown.begin();
  EXPECT_LT(static_cast<size_t>(place) * 100, HeldLines::kRound + (4 << 10));
}

TEST(HeldLines, RanksThatPrintMuchTakeTurnsOfEqualSize) {
  HeldLines held;
  print(held, "a", 1, 5'000);
  print(held, "b", 1, 5'000);

  const std::vector<std::string> shown = taken(held);

  const auto of_b = std::count_if(shown.begin(), shown.begin() + 5'000,
                                  [](const std::string& line) { return line[0] == 'b'; });
  EXPECT_GT(of_b, 2'000);
  EXPECT_LT(of_b, 3'000);
}

TEST(HeldLines, LeavesOutTheOldestLinesOfTheRankThatHoldsMostAndCountsThem) {
  HeldLines held(1 << 20);
  print(held, "some", 1, 500);
  print(held, "flood", 1, 100'000);
  EXPECT_LE(held.bytes(), 1U << 20);

  const std::vector<std::string> shown = taken(held);

  int lines_of_some = 0;
  int last = 0;
  int gaps = 0;
  for (const std::string& line : shown) {
    if (line.starts_with("some:")) {
      EXPECT_EQ(number_in_line(line), ++lines_of_some);
    } else if (line.starts_with("flood-")) {
      ++gaps;
      last += std::stoi(line.substr(6));
    } else {
      EXPECT_EQ(number_in_line(line), ++last);
    }
  }
  EXPECT_EQ(lines_of_some, 500);
  EXPECT_EQ(last, 100'000);
  EXPECT_EQ(gaps, 1);
  EXPECT_GT(shown.size(), 3'000U);
}

TEST(HeldLines, MessagesOfMusterAreNotLeftOut) {
  LogRecord notice = log_line("flood", "the disk is full");
  notice.stream = job::LogStream::kNotice;
  HeldLines held(64 << 10);
  held.add(notice);
  print(held, "flood", 1, 10'000);

  const std::vector<std::string> shown = taken(held);

  EXPECT_EQ(shown.front(), "flood:the disk is full");
  EXPECT_TRUE(shown[1].starts_with("flood-")) << shown[1];
}

TEST(HeldLines, DoesNotBeginInTheMiddleOfALine) {
  HeldLines held(64 << 10);
  for (int line = 0; line < 40; ++line) {
    held.add(log_line("long", std::string(5'000, 'a'), true));
    held.add(log_line("long", std::string(5'000, 'b'), true));
    held.add(log_line("long", "end"));
  }

  const std::vector<std::string> shown = taken(held);

  ASSERT_GT(shown.size(), 3U);
  EXPECT_TRUE(shown[0].starts_with("long-")) << shown[0];
  EXPECT_TRUE(shown[1].starts_with("long:aa")) << shown[1].substr(0, 20);
  // Three records are a line.
  EXPECT_EQ(std::stoi(shown[0].substr(5)) * 3 + static_cast<int>(shown.size()) - 1, 40 * 3);
}

TEST(HeldLines, ManyRanksShareTheMemory) {
  HeldLines held(256 << 10);
  for (int round = 0; round < 100; ++round) {
    for (int rank = 0; rank < 20; ++rank) {
      print(held, "rank-" + std::to_string(rank), round * 10 + 1, round * 10 + 10);
    }
  }
  EXPECT_LE(held.bytes(), 256U << 10);

  std::map<std::string, int> last;
  for (const std::string& line : taken(held)) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    int& number = last[line.substr(0, colon)];
    EXPECT_LT(number, number_in_line(line));
    number = number_in_line(line);
  }

  EXPECT_EQ(last.size(), 20U);
  for (const auto& [rank, number] : last) EXPECT_EQ(number, 1'000) << rank;
}

TEST(HeldLines, AGapIsALineOfTheRankWithTheCount) {
  LogRecord next = log_line("worker-3", "text", true);
  next.rank = 3;

  const LogRecord gap = gap_of(next, 1'234'567);

  EXPECT_EQ(gap.text, "... (1,234,567 lines not shown; --no-fold shows all)");
  EXPECT_EQ(gap.rank, 3);
  EXPECT_FALSE(gap.continues);
  EXPECT_EQ(gap_of(next, 1).text, "... (1 line not shown; --no-fold shows all)");
  EXPECT_EQ(gap_of(next, 999).text, "... (999 lines not shown; --no-fold shows all)");
}

}  // namespace

}  // namespace muster::cli::logs
