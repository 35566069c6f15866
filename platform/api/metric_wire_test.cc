#include "api/metric_wire.h"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

using namespace std::chrono_literals;
using job::MetricQuery;
using job::MetricSeries;

const base::Time kNoon{1'700'000'000s + 1ns};

TEST(MetricWire, ReadsBackWhatItWrites) {
  const std::vector<MetricSeries> series{
      {"loss", "worker-0", 3, {{kNoon, 0.1}, {kNoon + 1s, -1.5e-300}}},
      {"cpu_percent", "main", {}, {}}};
  const auto read = metrics_from_json(metrics_to_json(series));
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, series);
}

TEST(MetricWire, IsWrittenAsTheContractHasIt) {
  EXPECT_EQ(metrics_to_json({{"loss", "main", {}, {{base::Time(1s), 0.5}}}}),
            R"({"series":[{"metric":"loss","task":"main","points":)"
            R"([{"time":"1970-01-01T00:00:01.000000000Z","value":0.5}]}]})");
}

TEST(MetricWire, RefusesWhatIsNoSuchDocument) {
  for (const char* text : {"", "[]", "{}", R"({"series":[{}]})", R"({"series":[{"metric":"x"}]})",
                           R"({"series":[{"metric":"x","task":"m","points":[{"time":1}]}]})"}) {
    EXPECT_FALSE(metrics_from_json(text)) << text;
  }
}

TEST(MetricQuery, IsReadBackAsItWasWritten) {
  const MetricQuery query{.metrics = {"loss", "accuracy"},
                          .task = "worker-0",
                          .rank = 0,
                          .since = kNoon,
                          .until = kNoon + 1h,
                          .interval = 30s,
                          .last = true};
  const auto read = metric_query_from_parameters(metric_query_to_parameters(query));
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, query);
  EXPECT_EQ(*metric_query_from_parameters({}), MetricQuery{});
}

TEST(MetricQuery, TakesAnIntervalWithItsUnitOrInMilliseconds) {
  for (const auto& [text, interval] :
       std::vector<std::pair<std::string, std::chrono::milliseconds>>{
           {"30s", 30s}, {"500", 500ms}, {"500ms", 500ms}, {"2m", 2min}, {"1d", 24h}, {"0", 0ms}}) {
    const auto read = metric_query_from_parameters({{"interval", text}});
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(read->interval, interval) << text;
  }
}

TEST(MetricQuery, ReportsEveryFaultAtOnce) {
  Parameters parameters{{"rank", "-1"},       {"since", "today"}, {"last", "yes"},
                        {"interval", "soon"}, {"metrics", "x"},   {"metric", "1st"}};
  parameters.add("metric", "loss");
  const auto read = metric_query_from_parameters(parameters);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().to_string(),
            "the query for metrics is wrong\n"
            "  interval: 'soon' is no interval; write it as 30s, or as 500: in ms\n"
            "  last: 'yes' is neither true nor false\n"
            "  metric: '1st' is no name of a metric: letters, digits and _./-, at most 64\n"
            "  metrics: is not a parameter; did you mean 'metric'?\n"
            "  rank: '-1' is no rank; it is a number, 0 or more\n"
            "  since: 'today' is not a time; write it as 2026-01-31T12:34:56Z");
}

TEST(MetricQuery, RefusesIntervalsThatCannotBeCounted) {
  for (const char* text : {"-1", "99999999999999999999", "9999999999999", "400000d", "", "1.5"}) {
    EXPECT_FALSE(metric_query_from_parameters({{"interval", text}})) << text;
  }
}

}  // namespace
}  // namespace muster::api
