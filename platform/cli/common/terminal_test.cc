#include "cli/common/terminal.h"

#include <gtest/gtest.h>

namespace muster::cli {

namespace {

constexpr int64_t kMiB = 1 << 20;

TEST(ProgressBar, ShowsTheActionThePercentageAndTheSize) {
  EXPECT_EQ(progress_line("sending", 3 * kMiB, 4 * kMiB, 60),
            "sending [====================>      ]   75%  3 MiB of 4 MiB");
}

TEST(ProgressBar, IsFullAtTheEndAndForNothing) {
  EXPECT_EQ(progress_line("reading", kMiB, kMiB, 50),
            "reading [=================]  100%  1 MiB of 1 MiB");
  EXPECT_NE(progress_line("reading", 0, 0, 50).find("100%"), std::string::npos);
}

TEST(ProgressBar, StaysWithinTheTerminalAndLeavesItsLastColumnFree) {
  for (size_t columns = 1; columns < 150; ++columns) {
    for (const int64_t done : {int64_t{0}, 5 * kMiB, 1000 * kMiB}) {
      const std::string line = progress_line("reading", done, 1000 * kMiB, columns);
      EXPECT_LT(line.size(), columns) << line;
    }
  }
}

TEST(ProgressBar, NeverShowsMoreThanAllForAFileThatHasGrown) {
  EXPECT_NE(progress_line("reading", 5 * kMiB, 4 * kMiB, 60).find("100%"), std::string::npos);
}

TEST(ProgressBar, ShowsAnotherProgramsLineAsPlainText) {
  EXPECT_EQ(progress_line("fetching", "remote: \x1b[31mred\rCounting", 80),
            "fetching  remote: \\x1b[31mredCounting");
  EXPECT_EQ(progress_line("fetching", std::string(200, 'x'), 20).size(), 19U);
  EXPECT_EQ(progress_line("fetching", "äöü", 14), "fetching  ä") << "no half letters";
}

}  // namespace

}  // namespace muster::cli
