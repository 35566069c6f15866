#include "logs/log_index.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "logs/test_frames.h"

namespace muster::logs {
namespace {

using engine::LogFrame;
using Lines = std::vector<std::string>;

/// A log in memory. Offsets are as in a file.
class FramesCursor : public engine::LogCursor {
 public:
  explicit FramesCursor(const std::vector<LogFrame>& frames) : frames_(frames) {}

  base::Result<bool> next(LogFrame& frame) override {
    if (next_ >= frames_.size()) return false;
    if (frames_[next_].bytes == "damage") return base::Error{.what = "the log is damaged"};
    if (frames_[next_].bytes == "once unreadable\n" && !std::exchange(has_failed_, true)) {
      return base::Error{.code = base::ErrorCode::kExhausted, .what = "too many open files"};
    }
    frame = frames_[next_++];
    return true;
  }
  base::Result<void> seek_near_end(size_t) override { return {}; }
  uint64_t size() const override { return frames_.size(); }
  base::Result<void> seek(uint64_t offset) override {
    uint64_t at = 0;
    for (next_ = 0; at < offset; ++next_) at += size_in_log(frames_[next_]);
    EXPECT_EQ(at, offset) << "not the beginning of a frame";
    return {};
  }

 private:
  const std::vector<LogFrame>& frames_;
  size_t next_ = 0;
  bool has_failed_ = false;
};

Lines texts(const std::vector<NumberedLine>& lines) {
  Lines texts;
  for (const NumberedLine& line : lines) {
    texts.push_back(std::to_string(line.number) + (line.hit ? "!" : "") +
                    (line.unfinished ? "~" : "") + " " + line.record.text);
  }
  return texts;
}

class LogIndexTest : public testing::Test {
 protected:
  std::vector<LogFrame> frames_;
  std::unique_ptr<LogIndex> index_;

  LogIndex& index() {
    if (index_ == nullptr) {
      index_ = std::make_unique<LogIndex>(std::make_unique<FramesCursor>(frames_));
    }
    return *index_;
  }
  LogWindow window(std::optional<uint64_t> line, size_t lines) {
    FramesCursor cursor(frames_);
    auto window = index().window(cursor, {.line = line, .lines = lines});
    EXPECT_TRUE(window);
    return std::move(*window);
  }
  LogSearchResult search(const std::string& text, uint64_t line = 0, size_t hits = 100,
                         size_t context = 0) {
    FramesCursor cursor(frames_);
    auto found = index().search(cursor, {.matches =
                                             [&](const job::LogRecord& record) {
                                               return record.text.find(text) != std::string::npos;
                                             },
                                         .line = line,
                                         .hits = hits,
                                         .context = context});
    EXPECT_TRUE(found);
    return std::move(*found);
  }
  void print(std::string bytes, std::optional<int> rank = {}) {
    frames_.push_back(frame_of(std::move(bytes)));
    frames_.back().rank = rank;
  }
};

TEST_F(LogIndexTest, ShowsTheLastLinesOrThoseFromALineOn) {
  print("a\nb\n");
  print("c\nd\n");

  EXPECT_EQ(texts(window({}, 2).lines), (Lines{"2 c", "3 d"}));
  EXPECT_EQ(texts(window({}, 100).lines), (Lines{"0 a", "1 b", "2 c", "3 d"}));
  EXPECT_EQ(texts(window(1, 2).lines), (Lines{"1 b", "2 c"}));
  EXPECT_EQ(texts(window(9, 2).lines), Lines{});
  EXPECT_EQ(window({}, 0).extent.lines, 4U);
}

TEST_F(LogIndexTest, JoinsLinesOfProgramsThatPrintAtOnce) {
  print("one ", 0);
  print("two ", 1);
  print("and\n", 1);
  print("more\nlast", 0);

  EXPECT_EQ(texts(window({}, 10).lines), (Lines{"0 two and", "1 one more", "2~ last"}));
}

TEST_F(LogIndexTest, IncludesLinesThatAreWrittenDuringTheScan) {
  print("a\nb");
  EXPECT_EQ(texts(window({}, 10).lines), (Lines{"0 a", "1~ b"}));
  print("b\nc\n");
  EXPECT_EQ(texts(window({}, 10).lines), (Lines{"0 a", "1 bb", "2 c"}));
}

TEST_F(LogIndexTest, ReportsEachTimeThatTheLogCannotBeRead) {
  print("one\n");
  print("damage");
  for (int i = 0; i < 2; ++i) {
    FramesCursor cursor(frames_);
    const auto window = index().window(cursor, {.line = std::nullopt, .lines = 10});
    ASSERT_FALSE(window);
    EXPECT_EQ(window.error().what, "the log is damaged");
  }
}

TEST_F(LogIndexTest, ReadsOnWhenALackOfDescriptorsHasPassed) {
  print("one\n");
  print("two\n");
  EXPECT_EQ(texts(window({}, 10).lines), (Lines{"0 one", "1 two"}));
  print("once unreadable\n");
  FramesCursor cursor(frames_);
  const auto failed = index().window(cursor, {.line = std::nullopt, .lines = 10});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, base::ErrorCode::kExhausted);

  frames_.back().bytes = "three\n";
  EXPECT_EQ(texts(window({}, 10).lines), (Lines{"0 one", "1 two", "2 three"}));
}

TEST_F(LogIndexTest, FindsEveryLineOfALongLog) {
  constexpr size_t kLines = 60'000;
  for (size_t i = 0; i < kLines; ++i) {
    // Lines of two ranks, which end in frames of other lines.
    print("line " + std::to_string(i) + "\nbegin", static_cast<int>(i % 2));
  }
  for (const uint64_t first : {0U, 1U, 2U, 4095U, 4096U, 30'001U, 59'990U}) {
    const auto lines = window(first, 3).lines;
    ASSERT_EQ(lines.size(), 3U);
    for (size_t i = 0; i < lines.size(); ++i) {
      const std::string expected = "line " + std::to_string(first + i);
      EXPECT_TRUE(lines[i].record.text.ends_with(expected)) << first << lines[i].record.text;
      EXPECT_EQ(lines[i].record.text, (first + i < 2 ? "" : "begin") + expected);
    }
  }
  EXPECT_EQ(window({}, 0).extent.lines, kLines);
}

TEST_F(LogIndexTest, ShortensLongLinesBetweenCharacters) {
  std::string line(LogIndex::kMostShown - 1, 'x');
  print(line + "\xc3\xa4 and more\n");

  const auto shown = window({}, 1).lines.front();

  EXPECT_EQ(shown.record.text, line);
  EXPECT_EQ(shown.bytes, line.size() + 11);
}

TEST_F(LogIndexTest, FindsHitsWithTheirContext) {
  print("a\nb\nhit 1\nc\nd\ne\nf\nhit 2\nhit 3\ng\n");

  EXPECT_EQ(texts(search("hit").lines), (Lines{"2! hit 1", "7! hit 2", "8! hit 3"}));
  EXPECT_EQ(texts(search("hit", 0, 100, 1).lines),
            (Lines{"1 b", "2! hit 1", "3 c", "6 f", "7! hit 2", "8! hit 3", "9 g"}));
  EXPECT_EQ(search("hit").next, std::nullopt);
  EXPECT_EQ(texts(search("nothing").lines), Lines{});
}

TEST_F(LogIndexTest, ContinuesASearchWhereItEnded) {
  print("hit 0\nhit 1\nx\nhit 3\n");

  const LogSearchResult first = search("hit", 0, 2);
  EXPECT_EQ(texts(first.lines), (Lines{"0! hit 0", "1! hit 1"}));
  ASSERT_TRUE(first.next);
  const LogSearchResult rest = search("hit", *first.next, 2);
  EXPECT_EQ(texts(rest.lines), (Lines{"3! hit 3"}));
  EXPECT_EQ(rest.next, std::nullopt);
}

TEST_F(LogIndexTest, EndsASearchThatTakesTooLongAfterOneLine) {
  print("hit 0\nhit 1\nhit 2\n");
  LogSearchQuery query{.matches = [](const job::LogRecord&) { return true; }, .line = 1};
  query.is_late = [] { return true; };
  FramesCursor cursor(frames_);

  const auto found = index().search(cursor, query);

  ASSERT_TRUE(found);
  EXPECT_EQ(texts(found->lines), (Lines{"1! hit 1"}));
  EXPECT_EQ(found->next, 2U);
}

TEST_F(LogIndexTest, BeginsAfterTheBytesThatWereCutInTheMeantime) {
  const std::string long_line(40'000, 'x');
  for (int i = 0; i < 10; ++i) print(long_line + std::to_string(i) + "\n");
  EXPECT_EQ(window({}, 0).extent.lines, 10U);
  // The first five frames become one hole.
  uint64_t cut = 0;
  for (int i = 0; i < 5; ++i) cut += size_in_log(frames_[static_cast<size_t>(i)]);
  std::vector<LogFrame> rest(frames_.begin() + 5, frames_.end());
  LogFrame notice = frame_of("the front was cut\n");
  notice.cut = cut;
  frames_ = {notice};
  frames_.insert(frames_.end(), rest.begin(), rest.end());

  FramesCursor cursor(frames_);
  const auto window = index().window(cursor, {.line = 0, .lines = 100});

  ASSERT_TRUE(window);
  EXPECT_GE(window->extent.first, 5U);
  EXPECT_EQ(window->lines.front().number, window->extent.first);
  EXPECT_EQ(window->lines.back().number, 9U);
  EXPECT_EQ(window->lines.back().bytes, long_line.size() + 1);
}

}  // namespace
}  // namespace muster::logs
