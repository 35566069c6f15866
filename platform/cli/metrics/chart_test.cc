#include "cli/metrics/chart.h"

#include <gtest/gtest.h>

#include <cmath>

namespace muster::cli::metrics {

namespace {

using namespace std::chrono_literals;
using job::MetricPoint;
using job::MetricSeries;

const base::Time kBegin{1'700'000'000s};

MetricSeries series_of(const std::string& metric, const std::string& task,
                       const std::vector<double>& values, std::optional<int> rank = {}) {
  MetricSeries series{.metric = metric, .task = task, .rank = rank};
  for (size_t i = 0; i < values.size(); ++i) {
    series.points.push_back({kBegin + std::chrono::seconds(10 * i), values[i]});
  }
  return series;
}

/// A falling line without noise.
MetricSeries falling() {
  return series_of("loss", "main", {1.0, 0.8, 0.6, 0.4, 0.2});
}

Chart chart_of(const std::vector<double>& values, MetricUnit unit = MetricUnit::kNumber) {
  return {.title = "x", .unit = unit, .series = {{"main", series_of("x", "main", values).points}}};
}

// --- axes

TEST(ValueAxis, EnclosesAllValuesWithRoundNumbers) {
  struct Case {
    std::vector<double> values;
    double low, high, step;
  };
  for (const Case& c : std::vector<Case>{{{0.2, 0.9}, 0, 1, 0.2},
                                         {{0, 100}, 0, 100, 20},
                                         {{97, 99}, 97, 99, 0.5},
                                         {{-3, 4}, -4, 4, 2},
                                         {{-9, -1}, -10, 0, 2},
                                         {{5}, 2, 8, 2},
                                         {{0}, -1, 1, 0.5},
                                         {{}, 0, 1, 0.2},
                                         {{1234, 5678}, 0, 6000, 2000}}) {
    const ValueAxis axis = value_axis(chart_of(c.values), 5);
    const std::string of = testing::PrintToString(c.values);
    EXPECT_NEAR(axis.low, c.low, 1e-12) << of;
    EXPECT_NEAR(axis.high, c.high, 1e-12) << of;
    EXPECT_NEAR(axis.step, c.step, 1e-12) << of;
    EXPECT_LE(axis.steps(), 5) << of;
  }
}

TEST(ValueAxis, CountsSizesInPowersOfTwo) {
  const ValueAxis axis = value_axis(chart_of({1e9, 1.9e9}, MetricUnit::kBytes), 4);
  EXPECT_EQ(axis.step, double(512 << 20));
  EXPECT_EQ(label_of(axis, axis.steps(), MetricUnit::kBytes), "2Gi");
}

TEST(ValueAxis, EnclosesVeryLargeAndVerySmallValues) {
  for (const auto& values : std::vector<std::vector<double>>{
           {-1.7e308, 1.7e308}, {1e-300, 3e-300}, {1e300}, {-1e300, 0}, {1e15, 1e15 + 1}}) {
    const ValueAxis axis = value_axis(chart_of(values), 4);
    EXPECT_TRUE(std::isfinite(axis.low) && std::isfinite(axis.high)) << values.front();
    EXPECT_GT(axis.high, axis.low) << values.front();
    EXPECT_GE(axis.steps(), 1) << values.front();
    EXPECT_FALSE(chart_text({chart_of(values)}, {}, {}).empty());
  }
}

TEST(TimeAxis, BeginsWithTheJobAndEndsWithTheLastValue) {
  const TimeAxis axis = time_axis({chart_of({1, 2, 3})}, kBegin - 20s, 4);
  EXPECT_EQ(axis.begin, kBegin - 20s);
  EXPECT_EQ(axis.length, 40s);
  EXPECT_EQ(axis.step, 10s);
  EXPECT_EQ(axis.place(kBegin), 0.5);
}

TEST(TimeAxis, HasALengthEvenForOneValueOrNoValue) {
  EXPECT_EQ(time_axis({chart_of({1})}, {}, 4).length, 1s);
  EXPECT_GT(time_axis({}, {}, 4).length, 0s);
}

TEST(ChartsOf, MakesAChartForEachMetricAndASeriesForEachTaskAndRank) {
  const auto charts = charts_of({series_of("loss", "w", {1}, 0), series_of("gpu_percent", "w", {1}),
                                 series_of("loss", "w", {2}, 1)});
  ASSERT_EQ(charts.size(), 2U);
  EXPECT_EQ(charts[0].series[0].label, "w rank 0");
  EXPECT_EQ(charts[0].series[1].label, "w rank 1");
  EXPECT_EQ(charts[1].unit, MetricUnit::kPercent);
  EXPECT_EQ(charts[1].series[0].label, "w");
}

// --- terminal

TEST(ChartText, DrawsOneSeriesInBraille) {
  EXPECT_EQ("\n" + chart_text(charts_of({falling()}), kBegin, {.columns = 32, .rows = 7}), R"(
loss
  1 ┤⠉⠒⠤⢄⣀
    │     ⠉⠒⠢⢄⡀
    │         ⠈⠉⠒⠤⣀⡀
0.5 ┤              ⠈⠑⠒⠤⢄⡀
    │                   ⠈⠉⠒⠤⣀
    │                        ⠉⠒⠤
  0 ┤
    └┬────────────┬────────────┬
     0            20s        40s
  main  0.2  (0.2 to 1)
)");
}

TEST(ChartText, DrawsLettersWithoutUnicode) {
  EXPECT_EQ("\n" + chart_text(charts_of({falling()}), kBegin,
                              {.columns = 32, .rows = 7, .unicode = false}),
            R"(
loss
  1 +****
    |    ******
    |          *****
0.5 +               ****
    |                   ****
    |                       ****
  0 +
    ++------------+------------+
     0            20s        40s
  * main  0.2  (0.2 to 1)
)");
}

TEST(ChartText, GivesEachSeriesItsOwnMarker) {
  const std::string picture =
      chart_text(charts_of({series_of("cpu_percent", "worker-0", {90, 90, 90}),
                            series_of("cpu_percent", "worker-1", {10, 10, 10})}),
                 kBegin, {.columns = 34, .rows = 4});
  EXPECT_EQ("\n" + picture, R"(
cpu_percent (%)
100% ┤●⠒⠒⠒⠒⠒⠒⠒●⠒⠒⠒⠒⠒⠒⠒●⠒⠒⠒⠒⠒⠒⠒●⠒⠒⠒
     │
     │
  0% ┤⠤⠤⠤⠤▲⠤⠤⠤⠤⠤⠤⠤▲⠤⠤⠤⠤⠤⠤⠤▲⠤⠤⠤⠤⠤⠤⠤
     └┬─────────────┬────────────┬
      0             10s        20s
  ● worker-0  90%  (90% to 90%)
  ▲ worker-1  10%  (10% to 10%)
)");
}

TEST(ChartText, ColoursSeriesOnATerminalWithColours) {
  const auto charts = charts_of({series_of("x", "a", {1, 1}), series_of("x", "b", {2, 2})});
  const std::string plain = chart_text(charts, kBegin, {.columns = 40, .colour = false});
  std::string coloured = chart_text(charts, kBegin, {.columns = 40, .colour = true});
  EXPECT_NE(coloured.find("  \x1b[36m●\x1b[0m a"), std::string::npos);
  EXPECT_NE(coloured.find("  \x1b[33m▲\x1b[0m b"), std::string::npos);
  EXPECT_EQ(plain.find('\x1b'), std::string::npos);
  for (const char* escape : {"\x1b[36m", "\x1b[33m", "\x1b[0m"}) {
    for (size_t at = coloured.find(escape); at != std::string::npos; at = coloured.find(escape)) {
      coloured.erase(at, std::string_view(escape).size());
    }
  }
  EXPECT_EQ(coloured, plain) << "the colours change nothing else";
}

TEST(ChartText, IsNeverWiderThanTheTerminal) {
  const auto charts =
      charts_of({series_of("memory_bytes", std::string(200, 'w'), {1e9, 2e9, 1e8})});
  for (const size_t columns : {20U, 40U, 80U, 200U}) {
    for (const bool unicode : {true, false}) {
      const std::string text = chart_text(charts, kBegin, {.columns = columns, .unicode = unicode});
      size_t begin = 0;
      for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
        size_t letters = 0;
        for (const char byte : text.substr(begin, end - begin)) letters += (byte & 0xc0) != 0x80;
        EXPECT_LE(letters, columns) << text.substr(begin, end - begin);
        begin = end + 1;
      }
    }
  }
}

TEST(ChartText, DrawsOnVerySmallTerminals) {
  for (const size_t size : {0U, 1U, 2U, 5U}) {
    EXPECT_FALSE(chart_text(charts_of({falling()}), kBegin, {.columns = size, .rows = 1}).empty());
  }
}

// --- SVG

TEST(ChartSvg, IsAStandaloneReadableFile) {
  const std::string svg = chart_svg(
      charts_of({falling(), series_of("memory_bytes", "main", {1e9, 2e9})}), kBegin, "dist");
  for (const char* part : {"<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"",
                           "<title>dist</title>", ">loss</text>", ">memory_bytes (bytes)</text>",
                           ">main: 0.2</text>", ">main: 1.9Gi</text>", ">10s</text>", "<polyline",
                           "prefers-color-scheme: dark", "time since 2023-11-14T22:13:20Z"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part << "\n" << svg;
  }
  for (const char* part : {"<script", "href", "@import", "url("}) {
    EXPECT_EQ(svg.find(part), std::string::npos) << part;
  }
}

TEST(ChartSvg, EscapesLabels) {
  const std::string svg = chart_svg(charts_of({series_of("x", "<b>\"&\x01\xff", {1, 2})}), kBegin,
                                    "<script>alert(1)</script>");
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(svg.find("<b>"), std::string::npos);
  EXPECT_NE(svg.find("&lt;b&gt;&quot;&amp; \xef\xbf\xbd: 2"), std::string::npos) << svg;
}

TEST(ChartSvg, ShowsASingleValueAsADot) {
  const std::string svg = chart_svg(charts_of({series_of("x", "main", {1})}), kBegin, "dist");
  EXPECT_NE(svg.find("<circle"), std::string::npos);
  EXPECT_EQ(svg.find("<polyline"), std::string::npos);
}

}  // namespace

}  // namespace muster::cli::metrics
