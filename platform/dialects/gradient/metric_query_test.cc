#include "dialects/gradient/metric_query.h"

#include <gtest/gtest.h>

namespace muster::dialects::gradient {

namespace {

using namespace std::chrono_literals;
using std::chrono::sys_days;

constexpr sys_days kDay = std::chrono::year(2026) / 1 / 31;

/// The faults of flags, one a line.
std::string faults_in(const cli::Arguments& arguments, const std::vector<std::string>& known = {}) {
  cli::FlagReader reader(arguments);
  read_metric_query(reader, known);
  std::string text;
  for (const base::Fault& fault : reader.faults()) text += fault.field + " " + fault.what + "\n";
  return text;
}

cli::Arguments arguments_with(std::map<std::string, std::vector<std::string>> flags) {
  cli::Arguments arguments;
  arguments.flags = std::move(flags);
  return arguments;
}

TEST(MetricQuery, TakesTheThreeFormsOfATime) {
  const base::Time day = kDay;
  EXPECT_EQ(*parse_metric_time("2026-01-31"), day);
  EXPECT_EQ(*parse_metric_time("2026-01-31T12:34:56"), day + 12h + 34min + 56s);
  EXPECT_EQ(*parse_metric_time("2026-01-31 00:00:00"), day);
}

TEST(MetricQuery, TakesNoOther) {
  for (const char* text :
       {"", "2026", "2026-1-31", "2026-02-30", "2026-01-31T12:34", "2026-01-31T24:00:00",
        "2026-01-31T12:60:00", "2026-01-31 12:34:56Z", "31.01.2026", "now", "2026-13-01"}) {
    EXPECT_FALSE(parse_metric_time(text).ok()) << text;
  }
}

TEST(MetricQuery, AsksForProcessorsAndMemoryWhereNothingIsSaid) {
  const cli::Arguments none;
  cli::FlagReader reader(none);
  EXPECT_EQ(read_metric_query(reader, {}),
            (MetricQuery{.metrics = {"cpuPercentage", "memoryUsage"}, .interval = 30s}));
  EXPECT_TRUE(reader.ok());
}

TEST(MetricQuery, TakesWhatIsSaid) {
  const cli::Arguments said = arguments_with({{"--metric", {"loss", "accuracy"}},
                                              {"--interval", {"5m"}},
                                              {"--start", {"2026-01-31"}},
                                              {"--end", {"2026-01-31 01:00:00"}}});
  cli::FlagReader reader(said);
  const base::Time day = kDay;
  EXPECT_EQ(read_metric_query(reader, {}),
            (MetricQuery{
                .metrics = {"loss", "accuracy"}, .interval = 5min, .start = day, .end = day + 1h}));
  EXPECT_TRUE(reader.ok());
}

TEST(MetricQuery, TellsAllFaultsAtOnce) {
  const std::string faults = faults_in(arguments_with({{"--metric", {"gpuTmp"}},
                                                       {"--interval", {"soon"}},
                                                       {"--start", {"yesterday"}},
                                                       {"--end", {"2026-01-31T25:00:00"}}}),
                                       {"gpuTemp", "cpuPercentage"});
  EXPECT_NE(faults.find("--metric 'gpuTmp' is none of gpuTemp cpuPercentage; did you mean "
                        "'gpuTemp'?\n"),
            std::string::npos)
      << faults;
  EXPECT_NE(faults.find("--interval "), std::string::npos) << faults;
  EXPECT_NE(faults.find("--start 'yesterday' is no time; write 2026-01-31, "), std::string::npos);
  EXPECT_NE(faults.find("--end '2026-01-31T25:00:00' is no time"), std::string::npos);
}

TEST(MetricQuery, RefusesTimesInTheWrongOrderAndNoIntervalAtAll) {
  EXPECT_EQ(faults_in(arguments_with({{"--start", {"2026-01-31"}}, {"--end", {"2026-01-30"}}})),
            "--end is before --start\n");
  EXPECT_EQ(faults_in(arguments_with({{"--interval", {"0"}}})), "--interval is no time at all\n");
}

}  // namespace

}  // namespace muster::dialects::gradient
