// `muster metrics` against a fake server.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/cli_fixture.h"
#include "cli/metrics/metrics.h"

namespace muster::cli::metrics {

namespace {

using namespace std::chrono_literals;

class Metrics : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    ::setenv("LC_ALL", "C", 1);
  }
  void TearDown() override {
    ::unsetenv("LC_ALL");
    Cli::TearDown();
  }

  static job::Job job(job::Phase phase) {
    job::Job job;
    job.id = "j1";
    job.spec.name = "dist";
    job.phase = phase;
    job.submitted = kBegin;
    job.started = kBegin;
    job.progress = job::Progress{.unit = "epoch", .done = 2, .total = 4, .ends = {}};
    job.tasks = job::tasks_of(job.spec);
    return job;
  }

  static std::vector<job::MetricSeries> measured() {
    return {{"cpu_percent", "main", {}, {{kBegin, 50}, {kBegin + 10s, 100}}},
            {"loss", "main", {}, {{kBegin, 1}, {kBegin + 10s, 0.5}}}};
  }

  static constexpr base::Time kBegin{1'700'000'000s};
};

TEST_F(Metrics, PrintsTablesWithoutNamedMetrics) {
  serve({.jobs = {job(job::Phase::kRunning)}, .metrics = measured()});
  const Outcome outcome = muster({"metrics", "dist"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(
      outcome.out.starts_with("dist  Running  epoch 2/4 50%\n\n"
                              "TASK   CPU\n"
                              "main  100%\n\n"
                              "METRIC  TASK  VALUE"))
      << outcome.out;
  EXPECT_NE(outcome.out.find("loss    main    0.5"), std::string::npos) << outcome.out;
}

TEST_F(Metrics, DrawsTheNamedMetricsInTheirOrder) {
  serve({.jobs = {job(job::Phase::kRunning)}, .metrics = measured()});
  const Outcome outcome = muster({"metrics", "dist", "loss", "--metric", "cpu_percent"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const size_t loss = outcome.out.find("\nloss\n");
  const size_t cpu = outcome.out.find("\ncpu_percent (%)\n");
  ASSERT_NE(loss, std::string::npos) << outcome.out;
  ASSERT_NE(cpu, std::string::npos) << outcome.out;
  EXPECT_LT(loss, cpu);
  EXPECT_NE(outcome.out.find("* main  0.5  (0.5 to 1)"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos);
}

TEST_F(Metrics, DrawsInBrailleInAUtf8Locale) {
  ::setenv("LC_ALL", "de_DE.utf8", 1);
  serve({.jobs = {job(job::Phase::kRunning)}, .metrics = measured()});
  EXPECT_NE(muster({"metrics", "dist", "loss"}).out.find("┤⠉"), std::string::npos);
}

TEST_F(Metrics, AnswersAnUnknownMetricWithTheNearestNameAndAllNames) {
  serve({.jobs = {job(job::Phase::kRunning)}, .metrics = measured()});
  const Outcome outcome = muster({"metrics", "dist", "los"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.err,
            "muster: job 'dist' has no metric 'los'; did you mean 'loss'?\n"
            "  it has cpu_percent, loss\n");
}

TEST_F(Metrics, ReportsThatThereAreNoMetrics) {
  serve({.jobs = {job(job::Phase::kRunning)}});
  EXPECT_NE(muster({"metrics", "dist"}).out.find("it has no metrics yet"), std::string::npos);
  EXPECT_EQ(muster({"metrics", "dist", "loss"}).code, 3);
  EXPECT_EQ(muster({"metrics", "other"}).code, 3);
}

TEST_F(Metrics, PrintsJsonYamlAndCsv) {
  serve({.jobs = {job(job::Phase::kRunning)}, .metrics = measured()});
  EXPECT_EQ(muster({"metrics", "dist", "loss", "--output", "csv"}).out,
            "time,metric,task,rank,value\n"
            "2023-11-14T22:13:20.000000000Z,loss,main,,1\n"
            "2023-11-14T22:13:30.000000000Z,loss,main,,0.5\n");
  EXPECT_EQ(muster({"metrics", "dist", "--output", "json"}).out,
            R"({"series":[{"metric":"cpu_percent","task":"main","points":)"
            R"([{"time":"2023-11-14T22:13:30.000000000Z","value":100}]},)"
            R"({"metric":"loss","task":"main","points":)"
            R"([{"time":"2023-11-14T22:13:30.000000000Z","value":0.5}]}]})"
            "\n");
}

TEST_F(Metrics, WritesAnSvgFile) {
  serve({.jobs = {job(job::Phase::kRunning)}, .metrics = measured()});
  const std::string file = folder_ / "loss.svg";
  const Outcome outcome = muster({"metrics", "dist", "loss", "--svg", file});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_TRUE(text.str().starts_with("<svg ")) << text.str();
  EXPECT_EQ(muster({"metrics", "dist", "loss", "--svg", "-"}).out, text.str());
}

TEST_F(Metrics, AppearOnThePageOfARunningJob) {
  serve({.jobs = {job(job::Phase::kRunning)}, .metrics = measured()});
  const std::string page = muster({"get", "dist"}).out;
  EXPECT_TRUE(page.ends_with("\nUSE\n  TASK   CPU\n  main  100%\n")) << page;
  server_.reset();
  serve({.jobs = {job(job::Phase::kSucceeded)}, .metrics = measured()});
  EXPECT_EQ(muster({"get", "dist"}).out.find("USE"), std::string::npos);
}

TEST_F(Metrics, FollowsValuesToTheEndOfTheJob) {
  serve({.jobs = {job(job::Phase::kSucceeded)}, .metrics = measured()});
  const Outcome outcome = muster({"metrics", "dist", "loss", "--follow", "-o", "csv"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "time,metric,task,rank,value\n"
            "2023-11-14T22:13:20.000000000Z,loss,main,,1\n"
            "2023-11-14T22:13:30.000000000Z,loss,main,,0.5\n");
}

TEST_F(Metrics, FollowsEveryValueWithoutNamedMetrics) {
  serve({.jobs = {job(job::Phase::kSucceeded)}, .metrics = measured()});
  const Outcome outcome = muster({"metrics", "dist", "--follow", "-o", "csv"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 5) << outcome.out;
}

TEST_F(Metrics, FollowsValuesAcrossARestartOfTheServer) {
  // The answer to the second request and to its repetition are lost.
  serve({.jobs = {job(job::Phase::kSucceeded)},
         .answer_lost = "GET /v1/jobs/j1/metrics",
         .answer_lost_after = 1,
         .answers_lost = 2,
         .metrics = measured()});
  const Outcome outcome = muster({"metrics", "dist", "loss", "--follow", "-o", "csv"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 3) << outcome.out;
}

TEST_F(Metrics, CtrlCEndsAFollowThatGetsNoAnswer) {
  serve({.signal = SIGINT,
         .jobs = {job(job::Phase::kRunning)},
         .unanswered = "GET /v1/jobs/j1/metrics",
         .unanswered_after = 1,
         .metrics = measured()});
  EXPECT_EQ(muster({"metrics", "dist", "loss", "--follow", "-o", "csv"}).code, 130);
}

TEST_F(Metrics, AsksForTheValuesAfterThoseThatWerePrinted) {
  NewValues values({.metrics = {"loss"}, .last = true});
  EXPECT_FALSE(values.query().last);
  EXPECT_EQ(values.query().since, std::nullopt);

  values.take(
      {{"loss", "a", {}, {{kBegin, 1}, {kBegin + 10s, 2}}}, {"loss", "b", {}, {{kBegin, 3}}}},
      false);
  EXPECT_EQ(values.query().since, kBegin - 10s) << "before the older one of the two series";

  EXPECT_EQ(values.take({{"loss", "a", {}, {{kBegin, 1}, {kBegin + 10s, 2}}},
                         {"loss", "b", {}, {{kBegin, 3}, {kBegin + 20s, 4}}}},
                        false),
            "2023-11-14T22:13:40.000000000Z,loss,b,,4\n");
  EXPECT_EQ(values.query().since, kBegin);
}

TEST_F(Metrics, PrintsTheValuesOfANewSeriesThatArriveLate) {
  NewValues values({});
  values.take({{"loss", "a", {}, {{kBegin + 20s, 1}}}}, false);

  const base::Time late = kBegin + 12s;
  ASSERT_LE(values.query().since, late);
  EXPECT_EQ(
      values.take({{"loss", "a", {}, {{kBegin + 20s, 1}}}, {"loss", "b", {}, {{late, 2}}}}, false),
      "2023-11-14T22:13:32.000000000Z,loss,b,,2\n");
}

TEST_F(Metrics, NeverAsksForValuesBeforeTheTimeOfTheUser) {
  NewValues values({.since = kBegin + 5s});
  values.take({{"loss", "a", {}, {{kBegin + 6s, 1}}}}, false);
  EXPECT_EQ(values.query().since, kBegin + 5s);
}

TEST_F(Metrics, AsksForWholeIntervals) {
  NewValues values({.interval = 6s});
  values.take({{"loss", "a", {}, {{kBegin + 60s, 1}, {kBegin + 66s, 2}}}}, false);
  EXPECT_EQ(values.query().since, kBegin + 48s);
}

TEST_F(Metrics, ASeriesThatHasEndedDoesNotHoldTheTimeBack) {
  NewValues values({});
  const job::MetricSeries ended{"loss", "a", {}, {{kBegin, 1}}};
  for (int second = 1; second <= 100; ++second) {
    values.take({ended, {"loss", "b", {}, {{kBegin + std::chrono::seconds(second), 1}}}}, false);
  }
  EXPECT_EQ(values.query().since, kBegin + 90s);
}

TEST_F(Metrics, PrintsAnIntervalWhenItIsComplete) {
  NewValues values({.interval = 10s});
  const job::MetricSeries series{"loss", "a", {}, {{kBegin, 1}, {kBegin + 10s, 2}}};
  EXPECT_EQ(values.take({series}, false), "2023-11-14T22:13:20.000000000Z,loss,a,,1\n");
  EXPECT_EQ(values.take({series}, false), "");
  EXPECT_EQ(values.take({series}, true), "2023-11-14T22:13:30.000000000Z,loss,a,,2\n");
}

TEST_F(Metrics, PrintsAnIntervalOfASlowSeriesThoughItHasNoNextOne) {
  NewValues values({.interval = 10s});
  job::MetricSeries fast{"loss", "a", {}, {}};
  job::MetricSeries slow{"loss", "b", {}, {{kBegin, 7}}};
  const std::string line = "2023-11-14T22:13:20.000000000Z,loss,b,,7\n";
  const auto answer = [&](job::MetricSeries series) {
    std::erase_if(series.points, [&](const job::MetricPoint& point) {
      return values.query().since && point.time < *values.query().since;
    });
    return series;
  };
  std::string text;
  for (std::chrono::seconds second = 0s; second <= 80s; second += 1s) {
    if (second % 10s == 0s) fast.points.push_back({kBegin + second, 1});
    if (second == 60s) slow.points.push_back({kBegin + second, 8});
    text += values.take({answer(fast), answer(slow)}, false);
    EXPECT_EQ(text.find(line) != std::string::npos, second >= 20s) << second.count();
  }
  EXPECT_EQ(text.find(line), text.rfind(line));
}

TEST_F(Metrics, FollowsAChartOnlyOnATerminal) {
  const Outcome outcome = muster({"metrics", "dist", "loss", "--follow"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("--follow needs a terminal"), std::string::npos) << outcome.err;
}

TEST_F(Metrics, ReportsAllFaultsAtOnce) {
  const Outcome outcome = muster({"metrics", "dist", "2fast", "--rank", "-1", "--interval", "soon",
                                  "--since", "never", "--svg", "x", "--output", "csv", "--follow"});
  EXPECT_EQ(outcome.code, 2);
  for (const char* part :
       {"METRIC: '2fast' is not a valid metric name", "--rank: -1 is out of range",
        "--interval: ", "--since: ", "--svg: needs metrics", "--svg: cannot be used with --output",
        "--svg: cannot be used with --follow"}) {
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part << "\n" << outcome.err;
  }
}

}  // namespace

}  // namespace muster::cli::metrics
