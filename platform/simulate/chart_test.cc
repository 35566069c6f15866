#include <gtest/gtest.h>

#include "simulate/trace_replay.h"

namespace muster::simulate {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Chart, HasTheQueueTheUseAndTheTimeWithTheirUnits) {
  TraceReport report;
  report.makespan = hours(10);
  report.gpu_milli = 8000;
  report.timeline = {{seconds(0), 0, 4000}, {hours(5), 12, 8000}, {hours(10), 0, 0}};

  const std::string svg = chart_of(report, "a & b");

  for (const char* part : {"a &amp; b", "jobs waiting", "GPUs in use", ">100 %<", ">0 %<", ">10<",
                           ">15<", "time since the first submission (h)"})
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  EXPECT_EQ(count(svg, "<path"), 4u);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(Chart, KeepsAPeakThatIsShorterThanAPixel) {
  TraceReport report;
  report.makespan = hours(1000);
  report.gpu_milli = 8000;
  report.timeline = {{seconds(0), 0, 0}, {hours(500), 400, 0}, {hours(500) + seconds(1), 0, 0}};

  // 400 is the upper edge: something is drawn as high as the panel.
  EXPECT_NE(chart_of(report, "t").find("V70.0"), std::string::npos);
}

TEST(Chart, IsNoLongerForAMillionEvents) {
  TraceReport report;
  report.gpu_milli = 8000;
  report.makespan = seconds(1'000'000);
  for (int second = 0; second < 1'000'000; ++second)
    report.timeline.push_back({seconds(second), second % 7, second % 8000});

  EXPECT_LT(chart_of(report, "t").size(), 100'000u);
}

TEST(Chart, IsDrawnForATraceInWhichNothingHappened) {
  EXPECT_NE(chart_of({}, "t").find("</svg>"), std::string::npos);
}

}  // namespace
}  // namespace muster::simulate
