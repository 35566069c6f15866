// The measurements of tasks that every engine makes, and the metrics that it accepts from programs.
#include "engine/conformance.h"
#include "engine/metric_log.h"
#include "job/metric.h"

namespace muster::engine {
namespace {

class Metrics : public Conformance {
 protected:
  Metrics() {
    // As short as the clock ticks of /proc allow.
    open_bench([](BenchOptions& options) {
      options.first_sample = std::chrono::milliseconds(100);
      options.sample_interval = std::chrono::milliseconds(100);
      options.nvml = MUSTER_FAKE_NVML;
    });
  }

  /// A task as launch/ plans it.
  TaskPlan task(const std::string& text, const std::string& name = "main") {
    TaskPlan plan = script(text, name);
    plan.environment["MUSTER_METRICS"] =
        bench_->engine().generated_folder(gang_, name, sandbox()) + "/" + launch::kReportSocket;
    return plan;
  }

  std::vector<MetricSample> samples_of(const std::string& name) {
    return bench_->engine().open_metrics(gang_, name).read()->samples;
  }

  /// The values of a metric, oldest first.
  std::vector<double> values_of(std::string_view metric, const std::string& name = "main") {
    std::vector<double> values;
    for (const MetricSample& sample : samples_of(name)) {
      for (const auto& [its_name, value] : sample.values) {
        if (its_name == metric) values.push_back(value);
      }
    }
    return values;
  }

  double highest(std::string_view metric, const std::string& name = "main") {
    const auto values = values_of(metric, name);
    return values.empty() ? -1 : *std::max_element(values.begin(), values.end());
  }

  void stop(const std::string& name = "main") {
    bench_->engine().stop(gang_, {name}, StopMode::kNow);
    bench_->wait_for_end(name);
  }

  /// A Python program that reports "text" through the task's socket.
  static std::string report(const std::string& text) {
    return "python3 -c 'import os, socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto("
           "b\"" +
           text + "\", os.environ[\"MUSTER_METRICS\"])'; ";
  }
};

/// Tests whose tasks are Python programs, and which therefore run only on engines with Python.
class MetricsOfPython : public Metrics {};
class MetricsOfGpus : public Metrics {};
class MetricsWithoutEngine : public Metrics {};

// The test checks the amount of used CPU time, not the speed, which depends on other processes.
TEST_P(MetricsOfPython, SeeTheCpuTimeOfAProgramAndOfChildrenThatCameAndWent) {
  const std::string burn = "python3 -c 'import time\nwhile time.process_time() < 1: pass'";
  ASSERT_TRUE(bench_->start(gang_, {task("until [ -e go ]; do sleep 0.1; done; " + burn + " & " +
                                         burn + "; wait; echo burnt; exec sleep " + marker_)}));
  bench_->wait_until([&] { return !samples_of("main").empty(); });
  ASSERT_TRUE(base::write_file(scratch_ / "go", ""));
  wait_for_output("main");
  const size_t before = samples_of("main").size();
  bench_->wait_until([&] { return samples_of("main").size() > before + 1; });

  const auto samples = samples_of("main");
  double seconds = 0;
  for (size_t i = 1; i < samples.size(); ++i) {
    const std::chrono::duration<double> passed = samples[i].time - samples[i - 1].time;
    seconds += samples[i].values.front().second / 100 * passed.count();
  }
  EXPECT_EQ(samples.front().values.front().first, job::kCpuPercent);
  EXPECT_GT(seconds, 1.8);
  EXPECT_LT(seconds, 4);
  stop();
}

TEST_P(MetricsOfPython, SeeTheMemoryThatAProgramTakes) {
  constexpr double kTaken = 100 << 20;
  ASSERT_TRUE(bench_->start(
      gang_,
      {task("exec python3 -c 'import signal; taken = b\"x\" * (100 << 20); signal.pause()'")}));

  bench_->wait_until([&] { return highest(job::kMemoryBytes) >= kTaken; });

  EXPECT_GE(highest(job::kMemoryBytes), kTaken);
  EXPECT_LT(highest(job::kMemoryBytes), 2 * kTaken);
  stop();
}

TEST_P(MetricsOfPython, CountMemoryThatForkedProcessesShareOnce) {
  constexpr double kTaken = 100 << 20;
  ASSERT_TRUE(bench_->start(
      gang_, {task("exec python3 -c 'import os, signal; taken = b\"x\" * (100 << 20); "
                   "[os.fork() for i in range(3)]; print(1, flush=True); signal.pause()'")}));
  bench_->wait_until([&] { return log_of("main") == "1\n1\n1\n1\n1\n1\n1\n1\n"; });
  const size_t before = values_of(job::kMemoryBytes).size();

  bench_->wait_until([&] { return values_of(job::kMemoryBytes).size() > before + 1; });

  const auto values = values_of(job::kMemoryBytes);
  ASSERT_GT(values.size(), before + 1);
  EXPECT_GE(values.back(), kTaken);
  EXPECT_LT(values.back(), 2.5 * kTaken) << "eight processes share most of it";
  stop();
}

TEST_P(MetricsOfPython, MeasureTheBytesThatOneTaskSendsToAnother) {
  const std::string port_file = (scratch_ / "port").string();
  ASSERT_TRUE(bench_->start(
      gang_,
      {task("exec python3 -c 'import os, socket; s = socket.create_server((\"127.0.0.1\", 0))\n"
            "with open(\"" +
                port_file +
                ".new\", \"w\") as f: f.write(str(s.getsockname()[1]))\n"
                "os.rename(\"" +
                port_file + ".new\", \"" + port_file +
                "\")\n"
                "c = s.accept()[0]\nwhile c.recv(1 << 16): pass'",
            "sink")}));
  bench_->wait_until([&] { return std::filesystem::exists(port_file); });
  TaskPlan source = script(
      "exec python3 -c 'import socket, time\n"
      "c = socket.create_connection((\"127.0.0.1\", " +
          *base::read_file(port_file) +
          "))\nwhile True: c.sendall(bytes(1 << 16)); time.sleep(0.001)'",
      "source");

  ASSERT_TRUE(bench_->start(gang_, {source}));
  bench_->wait_until([&] {
    return highest(job::kNetworkSent, "source") > 10'000 &&
           highest(job::kNetworkReceived, "sink") > 10'000;
  });

  EXPECT_GT(highest(job::kNetworkSent, "source"), 10'000);
  EXPECT_GT(highest(job::kNetworkReceived, "sink"), 10'000);
  EXPECT_LT(highest(job::kNetworkReceived, "source"), 10'000);
  EXPECT_LT(highest(job::kNetworkSent, "sink"), 10'000);
  stop("source");
  bench_->wait_for_end("sink");
}

TEST_P(MetricsOfGpus, MeasureOnlyTheGpusOfTheTask) {
  // Processes that hold tasks start from a clean environment.
  ASSERT_TRUE(
      base::write_file(MUSTER_FAKE_NVML ".gpus",
                       "A100|1000|GPU-a|400|97|250500|61\nA100|1000|GPU-b|100|50|100250|70"));
  TaskPlan with = task("exec sleep " + marker_, "with");
  with.gpus = {"1"};
  const TaskPlan without = task("exec sleep " + marker_, "without");

  ASSERT_TRUE(bench_->start(gang_, {with, without}));
  bench_->wait_until([&] {
    return !values_of(job::kGpuPercent, "with").empty() && !samples_of("without").empty();
  });
  EXPECT_EQ(highest(job::kGpuPercent, "with"), 50);
  EXPECT_EQ(highest(job::kGpuMemoryBytes, "with"), 100);
  EXPECT_EQ(highest(job::kGpuCelsius, "with"), 70);
  EXPECT_FALSE(samples_of("without").empty());
  EXPECT_TRUE(values_of(job::kGpuPercent, "without").empty());
  stop("with");
  stop("without");
}

TEST_P(MetricsOfPython, TakeReportsByTheSocketEvenOneOfATaskThatEndsAtOnce) {
  run(task(report("epoch=3 epochs=10 loss=0.183 rank=1") + report("loss=0.125")));

  const auto samples = samples_of("main");
  std::vector<std::pair<std::optional<int>, double>> losses;
  for (const MetricSample& sample : samples) {
    for (const auto& [name, value] : sample.values) {
      if (name == "loss") losses.emplace_back(sample.rank, value);
    }
  }
  EXPECT_EQ(losses, (std::vector<std::pair<std::optional<int>, double>>{{1, 0.183}, {{}, 0.125}}));
  EXPECT_EQ(values_of("epochs"), std::vector<double>{10});
}

TEST_P(Metrics, TakeReportsThatArePrintedAndLeaveThemInTheLog) {
  run(
      task("echo ::metrics loss=0.5; echo '[1,2]<stdout>:::metrics loss=0.25' >&2; "
           "printf '::metrics loss=0.125'"));

  auto values = values_of("loss");
  std::sort(values.begin(), values.end());  // the two streams go their own ways
  EXPECT_EQ(values, (std::vector<double>{0.125, 0.25, 0.5}));
  EXPECT_EQ(log_of("main"), "::metrics loss=0.5\n::metrics loss=0.125");
}

TEST_P(MetricsWithoutEngine, GoOnWhileThereIsNoEngine) {
  ASSERT_TRUE(bench_->start(gang_, {task("until [ -e go ]; do sleep 0.01; done; " +
                                         report("loss=1") + "exec sleep " + marker_)}));
  const std::filesystem::path metrics = folder_ / "jobs" / kJob / "1" / "main" / "metrics";
  bench_->wait_until([&] { return !samples_of("main").empty(); });
  bench_.reset();

  ASSERT_TRUE(base::write_file(scratch_ / "go", ""));
  MetricReader reader(metrics);
  bool reported = false;
  bool sampled_behind = false;
  Bench elsewhere(GetParam(), folder_ / "elsewhere");  // for its loop
  elsewhere.wait_until([&] {
    const auto read = reader.read();
    for (const MetricSample& sample : read->samples) {
      if (reported && sample.values.front().first == job::kCpuPercent) sampled_behind = true;
      if (sample.values.front().first == "loss") reported = true;
    }
    return sampled_behind;
  });
  EXPECT_TRUE(reported);
  EXPECT_TRUE(sampled_behind);

  open_bench();
  ASSERT_EQ(bench_->engine().adopt(gang_, "main"), AdoptionResult::kRunning);
  stop();
}

TEST_P(Metrics, AreNotMeasuredOfATaskThatEndsBeforeTheFirstSample) {
  open_bench([](BenchOptions& options) { options.first_sample = std::chrono::hours(1); });

  run(task("true"));

  EXPECT_FALSE(std::filesystem::exists(folder_ / "jobs" / kJob / "1" / "main" / "metrics"));
}

TEST_P(MetricsOfPython, OfAFloodDoNotHoldTheProgramUpAndEndWithTheLast) {
  const TaskEnded end =
      run(task("exec python3 -c 'import os, socket\n"
               "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
               "for i in range(20001): s.sendto(b\"n=%d\" % i, os.environ[\"MUSTER_METRICS\"])'"));

  EXPECT_EQ(end.status.code, 0);
  const auto values = values_of("n");
  ASSERT_FALSE(values.empty());
  EXPECT_EQ(values.back(), 20000);
  EXPECT_NE(log_of("main", job::LogStream::kNotice).find("reports in a second"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Engines, Metrics, testing::ValuesIn(grounds()), ground_name);

// Some test programs have no engine for this suite.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MetricsOfPython);
INSTANTIATE_TEST_SUITE_P(Engines, MetricsOfPython,
                         testing::ValuesIn(grounds_where(&Ground::is_container, false)),
                         ground_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MetricsOfGpus);
INSTANTIATE_TEST_SUITE_P(Engines, MetricsOfGpus,
                         testing::ValuesIn(grounds_where(&Ground::has_fake_gpus)), ground_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MetricsWithoutEngine);
INSTANTIATE_TEST_SUITE_P(Engines, MetricsWithoutEngine,
                         testing::ValuesIn(grounds_where(&Ground::has_folders)), ground_name);

}  // namespace
}  // namespace muster::engine
