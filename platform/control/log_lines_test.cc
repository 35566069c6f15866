#include "control/log_lines.h"

#include <gtest/gtest.h>

#include <vector>

#include "control/test_logs.h"

namespace muster::control {
namespace {

using engine::LogFrame;
using job::LogRecord;
using job::LogStream;

LogFrame rank_frame(int rank, std::string bytes) {
  return {.time = kFirstFrame, .bytes = std::move(bytes), .rank = rank};
}

/// "rank|text" of each record, "…" at the end where its line goes on.
std::vector<std::string> split_lines(LineSplitter splitter, const std::vector<LogFrame>& frames) {
  std::vector<std::string> lines;
  const auto emit = [&](const LogRecord& record) {
    lines.push_back((record.rank ? std::to_string(*record.rank) + "|" : "") + record.text +
                    (record.continues ? "…" : ""));
  };
  for (const LogFrame& each : frames) splitter.add(each, emit);
  splitter.flush(true, emit);
  return lines;
}

using LineTexts = std::vector<std::string>;

TEST(LineSplitter, JoinsALineFromFramesAndEndsTheLastOne) {
  EXPECT_EQ(split_lines({"main", "h"}, {frame_of("a\nb"), frame_of("c\nd")}),
            (LineTexts{"a", "bc", "d"}));
}

TEST(LineSplitter, KeepsTheUnfinishedLinesOfTheStreamsApart) {
  EXPECT_EQ(split_lines({"main", "h"},
                        {frame_of("out"), frame_of("err\n", LogStream::kError), frame_of("put\n")}),
            (LineTexts{"err", "output"}));
}

TEST(LineSplitter, KeepsTheUnfinishedLinesOfRanksApart) {
  EXPECT_EQ(split_lines({"worker-0", "h"}, {rank_frame(0, "ze"), rank_frame(12, "twelve\n"),
                                            frame_of("task\n"), rank_frame(0, "ro\n")}),
            (LineTexts{"12|twelve", "task", "0|zero"}));
}

TEST(LineSplitter, CutsAnEndlessLineIntoPiecesOfItsRank) {
  const std::string endless(kLongestPiece * 2 + 3, 'x');

  const LineTexts lines =
      split_lines({"worker-0", "h"}, {rank_frame(3, endless), rank_frame(3, "\nnext\n")});

  ASSERT_EQ(lines.size(), 4U);
  EXPECT_TRUE(lines[0].starts_with("3|xxx"));
  EXPECT_TRUE(lines[0].ends_with("…"));
  EXPECT_TRUE(lines[1].ends_with("…"));
  EXPECT_EQ(lines[2], "3|xxx");
  EXPECT_EQ(lines[3], "3|next");
}

TEST(LineSplitter, CarriesEveryByteIncludingNul) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  std::string seen;
  LineSplitter splitter("main", "h");
  const auto emit = [&](const LogRecord& record) {
    seen += record.text + (record.continues ? "" : "\n");
  };

  splitter.add(frame_of(bytes + "\n"), emit);

  EXPECT_EQ(seen, bytes + "\n");
}

TEST(LineSplitter, GivesALineTheTimeOfItsFirstByte) {
  LineSplitter splitter("main", "h");
  base::Time seen;
  const auto emit = [&](const LogRecord& record) { seen = record.time; };
  splitter.add(frame_of("a", LogStream::kOutput, 1), emit);
  splitter.add(frame_of("b\n", LogStream::kOutput, 5), emit);

  EXPECT_EQ(seen, kFirstFrame + std::chrono::seconds(1));
}

}  // namespace
}  // namespace muster::control
