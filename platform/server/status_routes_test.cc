#include "server/status_routes.h"

#include <gtest/gtest.h>

#include "server/test_metrics_parser.h"

namespace muster::server {
namespace {

TEST(MetricsText, HasTheFormatOfPrometheus) {
  MetricsText text;
  text.counter("a_total", "Counts\nthings \\ \"so\".");
  text.sample(3, {{"name", "x\"y\\z\nw"}, {"other", ""}});
  text.gauge("b", "Half.");
  text.sample(0.5);
  control::Histogram<2> histogram({0.1, 2});
  histogram.add(0.05);
  histogram.add(0.1);
  histogram.add(1);
  histogram.add(5);
  text.histogram("c_seconds", "Times.", histogram);

  EXPECT_EQ(text.text(),
            "# HELP a_total Counts\\nthings \\\\ \"so\".\n"
            "# TYPE a_total counter\n"
            "a_total{name=\"x\\\"y\\\\z\\nw\",other=\"\"} 3\n"
            "# HELP b Half.\n"
            "# TYPE b gauge\n"
            "b 0.5\n"
            "# HELP c_seconds Times.\n"
            "# TYPE c_seconds histogram\n"
            "c_seconds_bucket{le=\"0.1\"} 2\n"
            "c_seconds_bucket{le=\"2\"} 3\n"
            "c_seconds_bucket{le=\"+Inf\"} 4\n"
            "c_seconds_sum 6.15\n"
            "c_seconds_count 4\n");
  const auto parsed = parse_metrics(text.text());
  EXPECT_EQ(parsed.fault, "");
  EXPECT_EQ(parsed.samples.at("a_total{name=x\"y\\z\nw,other=}"), 3);
}

TEST(MetricsParser, FindsInvalidText) {
  for (const std::string_view wrong :
       {"a 1\n", "# TYPE a gauge\na 1\n", "# HELP a x\n# TYPE a gauge\na one\n",
        "# HELP a x\n# TYPE a gauge\na 1", "# HELP a x\n# TYPE a gauge\na 1\na 1\n",
        "# HELP a x\n# TYPE a gauge\na{b=c} 1\n", "# HELP a x\n# TYPE a gauge\na{b=\"c} 1\n",
        "# HELP a x\n# TYPE a gauge\nb 1\n", "# HELP a x\n# TYPE a counter\na 1\n",
        "# HELP a x\n# TYPE a histogram\na_bucket{le=\"1\"} 2\na_bucket{le=\"+Inf\"} 1\n"
        "a_sum 1\na_count 1\n",
        "# HELP a x\n# TYPE a histogram\na_bucket{le=\"+Inf\"} 2\na_sum 1\na_count 1\n"}) {
    EXPECT_NE(parse_metrics(wrong).fault, "") << wrong;
  }
}

}  // namespace
}  // namespace muster::server
