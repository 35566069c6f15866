#include "logs/log_lines.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "logs/test_frames.h"

namespace muster::logs {
namespace {

using engine::LogFrame;
using job::LogStream;

std::shared_ptr<const job::LogPattern> pattern(const std::string& text) {
  return std::make_shared<const job::LogPattern>(*job::LogPattern::compile(text));
}

RunSplitter splitter(std::shared_ptr<const job::LogPattern> only = nullptr) {
  return {job::LogSource{.task = "main", .attempt = 3, .host = "h", .rank = {}}, std::move(only)};
}

using Runs = std::vector<std::string>;

/// A sink that keeps the bytes of each run.
RunSplitter::Emit into(Runs& runs) {
  return [&runs](const RunSplitter::Run& run) { runs.emplace_back(run.bytes); };
}

TEST(RunSplitter, EmitsTheWholeLinesOfAFrameAsOneRun) {
  Runs runs;
  RunSplitter lines = splitter();
  lines.add(frame_of("a\nb\nc"), into(runs));
  EXPECT_EQ(runs, Runs{"a\nb\n"});

  lines.add(frame_of("d\ne\n"), into(runs));
  EXPECT_EQ(runs, (Runs{"a\nb\n", "cd\n", "e\n"}));
  EXPECT_FALSE(lines.has_partial());
}

TEST(RunSplitter, EmitsTheSourceOfEachRun) {
  std::vector<job::LogSource> sources;
  RunSplitter lines = splitter();
  LogFrame of_rank = frame_of("a\n", LogStream::kError);
  of_rank.rank = 7;
  lines.add(of_rank, [&](const RunSplitter::Run& run) { sources.push_back(*run.source); });

  EXPECT_EQ(
      sources,
      std::vector<job::LogSource>{(job::LogSource{
          .task = "main", .attempt = 3, .host = "h", .rank = 7, .stream = LogStream::kError})});
}

TEST(RunSplitter, FlushesTheBeginningOfALine) {
  Runs runs;
  RunSplitter lines = splitter();
  lines.add(frame_of("10%"), into(runs));
  EXPECT_TRUE(lines.has_partial());
  lines.flush(false, into(runs));
  EXPECT_FALSE(lines.has_partial());
  lines.add(frame_of(" 20%\n"), into(runs));

  EXPECT_EQ(runs, (Runs{"10%", " 20%\n"}));
}

TEST(RunSplitter, FlushesLinesThatBeganLongBefore) {
  Runs runs;
  RunSplitter lines = splitter();
  lines.add(frame_of("old"), into(runs), 100);
  lines.add(frame_of("new", LogStream::kError), into(runs), 200);
  lines.flush_before(200, into(runs));

  EXPECT_EQ(runs, Runs{"old"});
  EXPECT_TRUE(lines.has_partial());
}

TEST(RunSplitter, FlushesTheBeginningsOfLinesThatHaveWaited) {
  Runs runs;
  RunSplitter lines = splitter();
  lines.add(frame_of("old"), into(runs), 100);
  lines.add(frame_of("new", LogStream::kError), into(runs), 200);
  lines.flush_waiting(200, into(runs));
  lines.add(frame_of(" line", LogStream::kError), into(runs), 300);
  lines.flush_waiting(300, into(runs));

  EXPECT_EQ(runs, (Runs{"old", "new line"}));
}

TEST(RunSplitter, ContinuesTheUnfinishedLinesOfAnotherSplitter) {
  Runs runs;
  RunSplitter first = splitter();
  first.add(frame_of("begun "), into(runs));
  first.flush(false, into(runs));
  first.add(frame_of("and "), into(runs));
  RunSplitter second = splitter();
  for (auto& [key, line] : first.unfinished()) second.restore(key, line);
  second.add(frame_of("ended\n"), into(runs));

  EXPECT_EQ(runs, (Runs{"begun ", "and ended\n"}));
}

TEST(RunSplitter, EmitsEveryByteHoweverItIsSplitIntoFrames) {
  std::mt19937 random(11);  // NOLINT: the same each time
  std::string expected;
  for (int i = 0; i < 200'000; ++i) {
    expected += random() % 20 == 0 ? '\n' : static_cast<char>(random() % 256);
  }
  expected += '\n';
  std::string got;
  RunSplitter lines = splitter();
  const auto emit = [&](const RunSplitter::Run& run) { got += run.bytes; };
  for (size_t at = 0; at < expected.size();) {
    const size_t size = std::min<size_t>(expected.size() - at, 1 + random() % 5000);
    lines.add(frame_of(expected.substr(at, size)), emit);
    at += size;
    if (random() % 10 == 0) lines.flush(false, emit);
  }
  EXPECT_EQ(got, expected);
}

// --- with a pattern

TEST(RunSplitterWithAPattern, EmitsMatchingLinesAndAllNotices) {
  Runs runs;
  RunSplitter lines = splitter(pattern("loss"));
  lines.add(frame_of("loss 1\nother\nloss 2\nlo"), into(runs));
  lines.add(frame_of("a notice\n", LogStream::kNotice), into(runs));
  lines.add(frame_of("ss 3\n"), into(runs));
  lines.add(frame_of("the end"), into(runs));
  lines.flush(true, into(runs));

  EXPECT_EQ(runs, (Runs{"loss 1\n", "loss 2\n", "a notice\n", "loss 3\n"}));
}

TEST(RunSplitterWithAPattern, HoldsALineBackUntilTheMatchIsDecided) {
  Runs runs;
  RunSplitter lines = splitter(pattern("end$"));
  lines.add(frame_of("this is the "), into(runs));
  lines.flush(false, into(runs));
  lines.add(frame_of("end\n"), into(runs));

  EXPECT_EQ(runs, Runs{"this is the end\n"});
}

TEST(RunSplitterWithAPattern, TheFirstPieceOfALongLineDecidesForAllPieces) {
  const std::string filler(2 * kLongestPiece, 'x');
  Runs runs;
  RunSplitter lines = splitter(pattern("yes"));
  lines.add(frame_of("yes" + filler), into(runs));
  lines.add(frame_of("tail\n"), into(runs));
  std::string shown;
  for (const std::string& run : runs) shown += run;
  EXPECT_EQ(shown, "yes" + filler + "tail\n");

  runs.clear();
  lines.add(frame_of("no" + filler), into(runs));
  lines.add(frame_of("yes\nyes\n"), into(runs));
  EXPECT_EQ(runs, Runs{"yes\n"});
}

TEST(RunSplitterWithAPattern, RemembersThatALineIsHiddenWhenItContinues) {
  const std::string piece(job::kMaxMatchedBytes, 'x');
  Runs runs;
  RunSplitter first = splitter(pattern("yes"));
  first.add(frame_of(piece), into(runs));
  first.flush(false, into(runs));
  EXPECT_TRUE(runs.empty());
  RunSplitter second = splitter(pattern("yes"));
  for (auto& [key, line] : first.unfinished()) second.restore(key, line);
  second.add(frame_of("yes\nyes again\n"), into(runs));

  EXPECT_EQ(runs, Runs{"yes again\n"});
}

}  // namespace
namespace {

using job::LogRecord;

LogFrame rank_frame(int rank, std::string bytes) {
  return {.time = kFirstFrame, .bytes = std::move(bytes), .rank = rank};
}

/// "rank|text" of each record, with "…" if its line continues.
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

TEST(LineSplitter, JoinsALineFromFramesAndEndsTheLastLine) {
  EXPECT_EQ(split_lines({"main", "h"}, {frame_of("a\nb"), frame_of("c\nd")}),
            (LineTexts{"a", "bc", "d"}));
}

TEST(LineSplitter, SeparatesTheUnfinishedLinesOfTheStreams) {
  EXPECT_EQ(split_lines({"main", "h"},
                        {frame_of("out"), frame_of("err\n", LogStream::kError), frame_of("put\n")}),
            (LineTexts{"err", "output"}));
}

TEST(LineSplitter, SeparatesTheUnfinishedLinesOfRanks) {
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

TEST(LineSplitter, EmitsEveryByteIncludingNul) {
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
namespace {

const RunSplitter::Key kKey{std::nullopt, job::LogStream::kOutput};

class Tail : public testing::Test {
 protected:
  void add(LogTail& tail, std::string_view bytes) {
    tail.add({kKey, source_, kFirstFrame, bytes}, counts_);
  }

  static std::string all_of(LogTail& tail) {
    tail.trim();
    job::LogBatch batch;
    tail.take_some(batch, SIZE_MAX);
    return batch.bytes();
  }

  job::LogBatch::Source source_ = std::make_shared<const job::LogSource>();
  std::shared_ptr<LogCounts> counts_ = std::make_shared<LogCounts>();
};

TEST_F(Tail, KeepsTheLastLinesOfRunsWithManyLines) {
  LogTail tail(3);
  add(tail, "1\n2\n3\n4\n");
  add(tail, "5\n");
  add(tail, "6\n");

  EXPECT_EQ(all_of(tail), "4\n5\n6\n");
  EXPECT_TRUE(tail.empty());
}

TEST_F(Tail, KeepsAllLinesIfThereAreFewer) {
  LogTail tail(10);
  add(tail, "1\n2\n");
  add(tail, "half");

  EXPECT_EQ(all_of(tail), "1\n2\nhalf");
}

TEST_F(Tail, KeepsNothingForZeroLines) {
  LogTail tail(0);
  add(tail, "1\n2\n");

  EXPECT_EQ(all_of(tail), "");
}

TEST_F(Tail, CountsTheDroppedBytes) {
  LogTail tail(1);
  add(tail, "one\ntwo\n");
  add(tail, "three\nfour\n");
  tail.trim();
  EXPECT_EQ((*counts_)[kKey], 14U);

  job::LogBatch batch;
  tail.take_some(batch, 1);
  EXPECT_EQ(batch.bytes(), "four\n");
  EXPECT_EQ((*counts_)[kKey], 19U);
}

TEST_F(Tail, CountsALineOfManyPiecesOnce) {
  const auto last = [this](size_t lines) {
    LogTail tail(lines);
    for (const char* bytes : {"start\n", "lo", "n", "g\nend\n", "more"}) add(tail, bytes);
    return all_of(tail);
  };
  EXPECT_EQ(last(1), "more");
  EXPECT_EQ(last(2), "end\nmore");
  EXPECT_EQ(last(3), "long\nend\nmore");
  EXPECT_EQ(last(4), "start\nlong\nend\nmore");
}

TEST_F(Tail, DropsThePiecesOfALineTogetherAlsoBetweenLinesOfAnotherSource) {
  const auto other = std::make_shared<const job::LogSource>();
  const auto last = [&](size_t lines) {
    counts_ = std::make_shared<LogCounts>();
    LogTail tail(lines);
    add(tail, "lo");
    tail.add({kKey, other, kFirstFrame, "a\n"}, nullptr);
    add(tail, "n");
    tail.add({kKey, other, kFirstFrame, "b\n"}, nullptr);
    add(tail, "g\n");
    tail.add({kKey, other, kFirstFrame, "c\n"}, nullptr);
    return all_of(tail);
  };
  EXPECT_EQ(last(4), "loa\nnb\ng\nc\n");
  EXPECT_EQ(last(3), "a\nb\nc\n");
  EXPECT_EQ((*counts_)[kKey], 5U) << "the whole line counts as passed";
  EXPECT_EQ(last(2), "b\nc\n");
  EXPECT_EQ(last(1), "c\n");
}

TEST_F(Tail, KeepsTheEndOfALineThatExceedsItsMemory) {
  LogTail tail(2);
  const std::string piece(1 << 20, 'x');
  add(tail, "start\n");
  for (int i = 0; i < 20; ++i) add(tail, piece);
  add(tail, "end\n");

  const std::string kept = all_of(tail);
  EXPECT_TRUE(kept.starts_with('x'));
  EXPECT_TRUE(kept.ends_with("xend\n"));
  EXPECT_LE(kept.size(), kMostTailBytes);
}

TEST_F(Tail, KeepsNoMoreThanItsMaximumOfBytes) {
  LogTail tail(1'000'000'000);
  const std::string line = std::string(99'999, 'x') + "\n";
  for (int i = 0; i < 300; ++i) add(tail, line);
  tail.trim();
  job::LogBatch batch;
  tail.take_some(batch, SIZE_MAX);

  EXPECT_EQ(batch.bytes().size(), kMostTailBytes / line.size() * line.size());
  EXPECT_EQ((*counts_)[kKey], 300 * line.size());
}

}  // namespace
}  // namespace muster::logs
