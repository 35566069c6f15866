#include "workspace/copy_report.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::workspace {
namespace {

using base::Error;
using base::ErrorCode;

struct Read {
  std::vector<CopyNote> notes;
  std::optional<Error> error;
  size_t failed = 0;
};

/// Passes the output in pieces of this many bytes.
Read read(std::string_view text, size_t piece = 1 << 20) {
  Read read;
  CopyReport report([&](const CopyNote& note) { read.notes.push_back(note); });
  for (size_t at = 0; at < text.size(); at += piece) report.append(text.substr(at, piece));
  read.error = report.error();
  read.failed = report.failed();
  return read;
}

TEST(CopyReport, ReadsItsLinesHoweverTheyAreSplit) {
  const CopyNote skipped{CopyNote::Kind::kSkipped, "'a: b' is a socket"};
  const CopyNote failed{CopyNote::Kind::kFailed, "'c' cannot be read"};
  const Error error{
      .code = ErrorCode::kExhausted, .what = "the disk: is full", .advice = "make room"};
  const std::string text = to_line(skipped) + to_line(failed) + to_lines(error);
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    const Read report = read(text, piece);

    EXPECT_EQ(report.notes, (std::vector{skipped, failed})) << piece;
    EXPECT_EQ(report.failed, 1U);
    ASSERT_TRUE(report.error);
    EXPECT_EQ(report.error->code, ErrorCode::kExhausted);
    EXPECT_EQ(report.error->what, "the disk: is full");
    EXPECT_EQ(report.error->advice, "make room");
  }
}

TEST(CopyReport, TreatsOtherLinesAsAnErrorWhoseFirstLineIsTheSentence) {
  const Read report = read("muster-helper: cannot load a library\nand more\nadvice: none");

  ASSERT_TRUE(report.error);
  EXPECT_EQ(report.error->code, ErrorCode::kInternal);
  EXPECT_EQ(report.error->what, "muster-helper: cannot load a library");
  EXPECT_EQ(report.error->advice, "none");
  EXPECT_FALSE(read("skipped: 'x' is a fifo\n").error);
}

TEST(CopyReport, KeepsOnlyTheBeginningOfAnEndlessLine) {
  const Read report = read(std::string(1 << 20, 'x'), 1000);

  ASSERT_TRUE(report.error);
  EXPECT_EQ(report.error->what.size(), 16U << 10);
}

}  // namespace
}  // namespace muster::workspace
