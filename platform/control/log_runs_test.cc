#include "control/log_runs.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "control/test_logs.h"

namespace muster::control {
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

/// Keeps the bytes of each run.
RunSplitter::Emit into(Runs& runs) {
  return [&runs](const RunSplitter::Run& run) { runs.emplace_back(run.bytes); };
}

TEST(RunSplitter, HandsOverTheWholeLinesOfAFrameAsOneRun) {
  Runs runs;
  RunSplitter lines = splitter();
  lines.add(frame_of("a\nb\nc"), into(runs));
  EXPECT_EQ(runs, Runs{"a\nb\n"});

  lines.add(frame_of("d\ne\n"), into(runs));
  EXPECT_EQ(runs, (Runs{"a\nb\n", "cd\n", "e\n"}));
  EXPECT_FALSE(lines.has_partial());
}

TEST(RunSplitter, KnowsTheSourceOfEachRun) {
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

TEST(RunSplitter, FlushesABeginningThatGoesOn) {
  Runs runs;
  RunSplitter lines = splitter();
  lines.add(frame_of("10%"), into(runs));
  EXPECT_TRUE(lines.has_partial());
  lines.flush(false, into(runs));
  EXPECT_FALSE(lines.has_partial());
  lines.add(frame_of(" 20%\n"), into(runs));

  EXPECT_EQ(runs, (Runs{"10%", " 20%\n"}));
}

TEST(RunSplitter, HoldsBackNoLongerWhatStandsFarInFront) {
  Runs runs;
  RunSplitter lines = splitter();
  lines.add(frame_of("old"), into(runs), 100);
  lines.add(frame_of("new", LogStream::kError), into(runs), 200);
  lines.flush_before(200, into(runs));

  EXPECT_EQ(runs, Runs{"old"});
  EXPECT_TRUE(lines.has_partial());
}

TEST(RunSplitter, GoesOnWithTheUnfinishedLinesOfAnother) {
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

TEST(RunSplitter, CarriesEveryByteHoweverItIsCutIntoFrames) {
  std::mt19937 random(11);  // NOLINT: the same each time
  std::string wanted;
  for (int i = 0; i < 200'000; ++i) {
    wanted += random() % 20 == 0 ? '\n' : static_cast<char>(random() % 256);
  }
  wanted += '\n';
  std::string got;
  RunSplitter lines = splitter();
  const auto emit = [&](const RunSplitter::Run& run) { got += run.bytes; };
  for (size_t at = 0; at < wanted.size();) {
    const size_t size = std::min<size_t>(wanted.size() - at, 1 + random() % 5000);
    lines.add(frame_of(wanted.substr(at, size)), emit);
    at += size;
    if (random() % 10 == 0) lines.flush(false, emit);
  }
  EXPECT_EQ(got, wanted);
}

// --- lines with a pattern alone

TEST(RunSplitterWithAPattern, ShowsTheLinesThatHoldItAndAllNotices) {
  Runs runs;
  RunSplitter lines = splitter(pattern("loss"));
  lines.add(frame_of("loss 1\nother\nloss 2\nlo"), into(runs));
  lines.add(frame_of("a notice\n", LogStream::kNotice), into(runs));
  lines.add(frame_of("ss 3\n"), into(runs));
  lines.add(frame_of("the end"), into(runs));
  lines.flush(true, into(runs));

  EXPECT_EQ(runs, (Runs{"loss 1\n", "loss 2\n", "a notice\n", "loss 3\n"}));
}

TEST(RunSplitterWithAPattern, HoldsALineBackUntilItIsKnownWhetherItIsShown) {
  Runs runs;
  RunSplitter lines = splitter(pattern("end$"));
  lines.add(frame_of("this is the "), into(runs));
  lines.flush(false, into(runs));
  lines.add(frame_of("end\n"), into(runs));

  EXPECT_EQ(runs, Runs{"this is the end\n"});
}

TEST(RunSplitterWithAPattern, LetsTheFirstPieceOfALongLineDecideForAllOfIt) {
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

TEST(RunSplitterWithAPattern, RemembersWhereItGoesOnThatALineIsHidden) {
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
}  // namespace muster::control
