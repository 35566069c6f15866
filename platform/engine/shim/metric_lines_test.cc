#include "engine/shim/metric_lines.h"

#include <gtest/gtest.h>

#include <vector>

#include "engine/shim/metric_intake.h"

namespace muster::engine {
namespace {

/// What the lines of a stream report, which comes in these pieces.
std::vector<std::string> reports_in(const std::vector<std::string>& pieces) {
  std::vector<std::string> reports;
  const auto found = [&](const PrintedReport& report) {
    reports.push_back((report.rank ? std::to_string(*report.rank) + ": " : "") +
                      std::string(report.text));
  };
  MetricLines lines;
  for (const std::string& piece : pieces) lines.look_at(piece, found);
  lines.end(found);
  return reports;
}

using Reports = std::vector<std::string>;

TEST(ReportInLine, IsFoundBehindTheTagsOfLaunchersWithTheirRank) {
  const struct {
    const char* line;
    PrintedReport report;
  } rows[] = {
      {"::metrics a=1", {.text = "a=1", .rank = {}}},
      {"  ::metrics a=1", {.text = "a=1", .rank = {}}},
      {"[1,0]<stdout>:::metrics a=1", {.text = "a=1", .rank = 0}},
      {"[1,12]<stderr>: ::metrics a=1", {.text = "a=1", .rank = 12}},
      {"[prterun-host-77@1,3]<stdout>: ::metrics a=1", {.text = "a=1", .rank = 3}},
      {"Sun Nov 22 01:49:26 2026[1,4]<stdout>:::metrics a=1", {.text = "a=1", .rank = 4}},
      {"Sun Nov 22 01:49:26 2026<stdout>:::metrics a=1", {.text = "a=1", .rank = {}}},
      {"[7] ::metrics a=1", {.text = "a=1", .rank = 7}},
      {"[rank3]:::metrics a=1", {.text = "a=1", .rank = 3}},
      {"[default0]:::metrics a=1", {.text = "a=1", .rank = {}}},
      {"12: ::metrics a=1", {.text = "a=1", .rank = 12}},
      {" 40%|####      | 4/10\r::metrics a=1\r", {.text = "a=1", .rank = {}}},
  };
  for (const auto& row : rows) EXPECT_EQ(report_in_line(row.line), row.report) << row.line;
}

TEST(ReportInLine, IsNotFoundWhereSomethingElseStandsBeforeTheMarker) {
  for (const char* line :
       {"", "metrics a=1", ": :metrics a=1", "::metricsa=1", "+ echo ::metrics a=1",
        "print(\"::metrics a=1\")", "INFO:root: see [1] and ::metrics a=1", "x ::metrics a=1",
        "error: ::metrics a=1", "::metrics a=1\rdone"}) {
    EXPECT_FALSE(report_in_line(line)) << line;
  }
}

TEST(MetricLines, FindsReportsAmongOtherLines) {
  EXPECT_EQ(reports_in({"hello\n::metrics a=1\nworld\n::metrics b=2\r\n\n[1,3]<stdout>:::metrics "
                        "c=3\ntime 12:30:00 :: x\n"}),
            (Reports{"a=1", "b=2", "3: c=3"}));
}

TEST(MetricLines, FindsThemHoweverTheyAreCutIntoPieces) {
  const std::string text = "x\n::metrics a=1\r\nyy\n[0] ::metrics b=2\n\n\n::metrics c=3";
  const Reports expected{"a=1", "0: b=2", "c=3"};
  for (size_t first = 0; first <= text.size(); ++first) {
    for (size_t second = first; second <= text.size(); ++second) {
      ASSERT_EQ(reports_in({text.substr(0, first), text.substr(first, second - first),
                            text.substr(second)}),
                expected)
          << first << " " << second;
    }
  }
  Reports single;
  for (const char c : text) single.emplace_back(1, c);
  EXPECT_EQ(reports_in(single), expected);
}

TEST(MetricLines, TakesNoLineThatIsTooLongAndGoesOnBehindIt) {
  const std::string long_text(2 * kLongestReport, 'x');
  EXPECT_EQ(reports_in({"::metrics a=1 " + long_text, long_text, "::metrics b=2\n::metrics c=3\n"}),
            Reports{"c=3"});
}

TEST(MetricLines, ForgetsWhatAProgressBarHasWipedOut) {
  std::vector<std::string> pieces;
  for (int i = 0; i < 1000; ++i) pieces.push_back("\r " + std::to_string(i) + " of 1000");
  pieces.push_back("\r::metrics a=1\n");

  EXPECT_EQ(reports_in(pieces), Reports{"a=1"});
}

TEST(MetricLines, FindNothingInBinaryOutput) {
  std::string bytes;
  for (int i = 0; i < 100'000; ++i) bytes += static_cast<char>(i * 7919 >> 3);

  EXPECT_EQ(reports_in({bytes, std::string(300, '\0'), bytes}), Reports{});
}

}  // namespace
}  // namespace muster::engine
