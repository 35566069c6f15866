#include "engine/shim/metric_intake.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

fs::path make_folder() {
  std::string pattern = testing::TempDir() + "intakeXXXXXX";
  return ::mkdtemp(pattern.data());
}

class Intake : public testing::Test {
 protected:
  ~Intake() override { fs::remove_all(folder_); }

  void report(const std::string& text, std::optional<int> rank = {}) {
    intake_.take(text, rank, clock_.now());
  }

  std::vector<MetricSample> written() const {
    return MetricReader(folder_ / "metrics").read()->samples;
  }

  /// Of a metric, oldest first.
  std::vector<double> values_of(const std::string& name) const {
    std::vector<double> values;
    for (const MetricSample& sample : written()) {
      for (const auto& [its_name, value] : sample.values) {
        if (its_name == name) values.push_back(value);
      }
    }
    return values;
  }

  fs::path folder_ = make_folder();
  base::FakeClock clock_;
  std::vector<std::string> notices_;
  MetricWriter writer_{folder_ / "metrics"};
  MetricIntake intake_{writer_, [this](std::string text) { notices_.push_back(std::move(text)); }};
};

TEST_F(Intake, WritesAReportAtOnceWithItsTimeAndRank) {
  report("loss=0.5 epoch=1");
  report("loss=0.25", 3);
  report("loss=0.125 rank=4", 3);

  EXPECT_EQ(written(),
            (std::vector<MetricSample>{
                {.time = clock_.now(), .rank = {}, .values = {{"loss", 0.5}, {"epoch", 1}}},
                {.time = clock_.now(), .rank = 3, .values = {{"loss", 0.25}}},
                {.time = clock_.now(), .rank = 4, .values = {{"loss", 0.125}}}}));
  EXPECT_EQ(intake_.due(), std::nullopt);
  EXPECT_TRUE(notices_.empty());
}

TEST_F(Intake, OfAFloodKeepsTheFirstOfASecondAtOnceAndTheLastAtItsEnd) {
  for (int i = 0; i < 1000; ++i) report("n=" + std::to_string(i));

  EXPECT_EQ(values_of("n").size(), kMostReports);
  EXPECT_EQ(values_of("n").back(), kMostReports - 1);
  ASSERT_TRUE(intake_.due());

  clock_.advance(std::chrono::seconds(1));
  EXPECT_LE(*intake_.due(), clock_.now());
  intake_.write_waiting(clock_.now());

  const auto values = values_of("n");
  ASSERT_EQ(values.size(), 2 * kMostReports);
  EXPECT_EQ(values[kMostReports], 1000 - kMostReports);
  EXPECT_EQ(values.back(), 999);
  EXPECT_EQ(intake_.due(), std::nullopt);
  EXPECT_EQ(notices_, std::vector<std::string>{"metrics: more than 100 reports a second came: some "
                                               "are left out, the last ones are kept"});
}

TEST_F(Intake, OfALastingFloodKeepsNoMoreThanItsBoundASecond) {
  constexpr int kSeconds = 20;
  for (int second = 0; second < kSeconds; ++second) {
    for (int i = 0; i < 500; ++i) report("n=1");
    clock_.advance(std::chrono::seconds(1));
  }
  intake_.finish(clock_.now());

  EXPECT_LE(written().size(), (kSeconds + 1) * kMostReports);
  ASSERT_EQ(notices_.size(), 2U);
  EXPECT_EQ(notices_[1], "metrics: " + std::to_string(kSeconds * 500 - written().size()) +
                             " reports of the program were left out");
}

TEST_F(Intake, WritesWhatStillWaitsWhenTheTaskEnds) {
  for (int i = 0; i < 150; ++i) report("n=" + std::to_string(i));

  intake_.finish(clock_.now());

  EXPECT_EQ(values_of("n").size(), 150U);
  EXPECT_EQ(values_of("n").back(), 149);
  EXPECT_TRUE(notices_.empty());
}

TEST_F(Intake, DoesNotWaitForAClockThatWasSetBack) {
  for (int i = 0; i < 150; ++i) report("n=1");
  clock_.advance(-std::chrono::hours(1));

  report("n=2");

  EXPECT_EQ(values_of("n").size(), 151U);
}

TEST_F(Intake, LeavesOutWhatItDoesNotUnderstandAndSaysSoOnce) {
  report("loss is \x1b[31m0.1");
  report("also=this?");
  report("rank=3");
  report("loss=nan");

  EXPECT_TRUE(written().empty());
  EXPECT_EQ(notices_, std::vector<std::string>{
                          "metrics: this report is not understood and left out, as others like it: "
                          "'loss is ?[31m0.1' (write NAME=NUMBER ...)"});
}

TEST_F(Intake, LeavesOutAReportThatIsTooLong) {
  report("a=1 " + std::string(kLongestReport, ' '));

  EXPECT_TRUE(written().empty());
  EXPECT_EQ(notices_.size(), 1U);
}

TEST_F(Intake, LeavesOutWhatMusterMeasuresItself) {
  report("cpu_percent=5 loss=1");

  EXPECT_TRUE(values_of("cpu_percent").empty());
  EXPECT_EQ(values_of("loss"), std::vector<double>{1});
  EXPECT_EQ(notices_, std::vector<std::string>{
                          "metrics: 'cpu_percent' is what Muster measures itself: reports of it "
                          "are left out"});
}

TEST_F(Intake, TakesSoManyNamesAndNoMore) {
  for (size_t i = 0; i < kMostNames + 5; ++i) {
    report("n" + std::to_string(i) + "=1");
    clock_.advance(std::chrono::seconds(1));
  }
  report("n0=2 n200=2");

  EXPECT_EQ(written().size(), kMostNames + 1);
  EXPECT_EQ(values_of("n0"), (std::vector<double>{1, 2}));
  EXPECT_EQ(notices_, std::vector<std::string>{"metrics: a task may report 200 different names: "
                                               "'n200' and more are left out"});
}

}  // namespace
}  // namespace muster::engine
