#include "engine/shim/task_metrics.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/test_folder.h"
#include "engine/shim/test_idle_process.h"
#include "engine/test_full_disk.h"
#include "engine/test_metrics.h"
#include "launch/task_plan.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

// --- the file

MetricSample sample(int64_t second, const std::string& name, std::optional<int> rank = {}) {
  return {.time = at_second(second), .rank = rank, .values = {{name, static_cast<double>(second)}}};
}

/// The times, in seconds, of the lines in `log` that contain `kind`.
std::vector<int64_t> seconds_in(const std::string& log, const std::string& kind = "") {
  std::vector<int64_t> seconds;
  std::string_view rest = log;
  for (size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    const std::string_view line = rest.substr(0, end);
    if (line.find(kind) != std::string_view::npos) {
      seconds.push_back(
          std::chrono::floor<std::chrono::seconds>(decode_sample(line)->time.time_since_epoch())
              .count());
    }
    rest.remove_prefix(end + 1);
  }
  return seconds;
}

std::string log_of(int64_t first, int64_t end, int64_t step) {
  std::string log;
  for (int64_t second = first; second < end; second += step)
    log += encode_sample(sample(second, "a"));
  return log;
}

TEST(ThinnedLog, AShortLogIsUnchanged) {
  const std::string log = log_of(0, 100, 1);

  EXPECT_EQ(thinned_log(log, at_second(100), log.size()), log);
}

TEST(ThinnedLog, RemovesCloseLinesButNotOfTheLastMinute) {
  const std::string log = log_of(0, 201, 1);

  const auto seconds = seconds_in(thinned_log(log, at_second(200), log.size() * 2 / 3));

  std::vector<int64_t> expected;
  for (int64_t second = 0; second < 140; second += 2) expected.push_back(second);
  for (int64_t second = 140; second <= 200; ++second) expected.push_back(second);
  EXPECT_EQ(seconds, expected);
}

TEST(ThinnedLog, ThePastStaysEvenlyCovered) {
  constexpr size_t kMost = 4000;
  std::string log;
  int64_t second = 0;
  for (int times = 0; times < 50; ++times) {
    for (; log.size() < kMost; second += 10) log += encode_sample(sample(second, "a"));
    log = thinned_log(log, at_second(second), kMost / 4 * 3);
    ASSERT_LE(log.size(), kMost / 4 * 3);
  }
  std::vector<int64_t> seconds = seconds_in(log);
  int64_t widest = 0;
  for (size_t i = 1; i < seconds.size(); ++i) {
    widest = std::max(widest, seconds[i] - seconds[i - 1]);
  }
  EXPECT_GT(seconds.size(), 50U);
  EXPECT_LE(seconds.front(), widest) << "the beginning is missing";
  EXPECT_LE(widest, 8 * second / static_cast<int64_t>(seconds.size()));
}

TEST(ThinnedLog, KeepsTheNewestOfEachKindHoweverTheyAlternate) {
  std::string log;
  for (int64_t second = 0; second < 8; ++second) {
    log += encode_sample(sample(second, "a", 0)) + encode_sample(sample(second, "a", 1));
    if (second == 3) log += encode_sample(sample(second, "once"));
  }

  const std::string thin = thinned_log(log, at_second(1000), log.size() * 2 / 3);

  EXPECT_EQ(seconds_in(thin, " 0 a="), (std::vector<int64_t>{1, 3, 5, 7}));
  EXPECT_EQ(seconds_in(thin, " 1 a="), (std::vector<int64_t>{1, 3, 5, 7}));
  EXPECT_EQ(seconds_in(thin, "once="), std::vector<int64_t>{3});
}

TEST(ThinnedLog, ThinsTheLastMinuteIfItFillsTheLog) {
  std::string log;
  for (int i = 0; i < 1000; ++i) log += encode_sample(sample(100 + i / 100, "a"));

  const std::string thin = thinned_log(log, at_second(110), 1000);

  EXPECT_LE(thin.size(), 1000U);
  EXPECT_EQ(seconds_in(thin).back(), 109);
  EXPECT_GT(seconds_in(thin).size(), 4U);
}

TEST(ThinnedLog, DropsTheOldestIfEachLineIsOfAnotherKind) {
  std::string log;
  for (int rank = 0; rank < 100; ++rank) log += encode_sample(sample(rank, "a", rank));

  const std::string thin = thinned_log(log, at_second(100), 1000);

  EXPECT_LE(thin.size(), 1000U);
  EXPECT_EQ(seconds_in(thin).back(), 99);
}

TEST(ThinnedLog, OfAnEmptyLogIsEmpty) {
  EXPECT_EQ(thinned_log("", at_second(1), 0), "");
  EXPECT_EQ(thinned_log("half a line", at_second(1), 100), "");
}

class Writing : public testing::Test {
 protected:
  Writing() {
    std::string pattern = testing::TempDir() + "metricsXXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Writing() override { fs::remove_all(folder_); }

  fs::path file() const { return folder_ / "metrics"; }

  fs::path folder_;
};

TEST_F(Writing, TheFirstSampleCreatesAPrivateFile) {
  MetricWriter writer(file());
  EXPECT_FALSE(fs::exists(file()));

  writer.write(sample(1, "a"));

  EXPECT_EQ(fs::status(file()).permissions(), fs::perms(0600));
  EXPECT_EQ(MetricReader(file()).read()->samples, std::vector<MetricSample>{sample(1, "a")});
}

TEST_F(Writing, NeverExceedsItsLimitAndEndsWithTheNewest) {
  constexpr int64_t kMost = 2000;
  MetricWriter writer(file(), kMost);
  MetricReader reader(file());
  int times_anew = 0;
  for (int64_t second = 0; second < 2000; ++second) {
    writer.write(sample(second, "a"));
    ASSERT_LE(static_cast<int64_t>(fs::file_size(file())), kMost);
    const auto read = reader.read();
    ASSERT_FALSE(read->samples.empty());
    ASSERT_EQ(read->samples.back(), sample(second, "a"));
    if (read->anew) ++times_anew;
  }
  const auto all = MetricReader(file()).read()->samples;
  EXPECT_GT(times_anew, 3);
  EXPECT_LT(all.front().time, at_second(300)) << "no old lines remain";
  EXPECT_EQ(fs::status(file()).permissions(), fs::perms(0600));
}

TEST_F(Writing, AFullDiskLosesOnlyWholeLines) {
  MetricWriter writer(file());
  writer.write(sample(1, "a"));
  {
    const FullDisk full(fs::file_size(file()) + 5);
    writer.write(sample(2, "a"));
  }
  writer.write(sample(3, "a"));

  EXPECT_EQ(seconds_in(*base::read_file(file())), (std::vector<int64_t>{1, 3}));
}

TEST_F(Writing, KeepsTheFileIfTheDiskIsTooFullToThinIt) {
  MetricWriter writer(file(), 200);
  for (int64_t second = 0; second < 6; ++second) writer.write(sample(second, "a"));
  const auto before = *base::read_file(file());
  {
    const FullDisk full(10);
    for (int64_t second = 6; second < 20; ++second) writer.write(sample(second, "a"));
  }
  EXPECT_EQ(*base::read_file(file()), before);

  writer.write(sample(100, "a"));

  EXPECT_EQ(seconds_in(*base::read_file(file())).back(), 100);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(Writing, AMissingFolderIsIgnored) {
  MetricWriter writer(folder_ / "missing" / "metrics");

  writer.write(sample(1, "a"));

  EXPECT_FALSE(fs::exists(folder_ / "missing"));
}

// --- reports

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

  /// The values of a metric, oldest first.
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

TEST_F(Intake, OfAFloodKeepsTheFirstAndTheLastOfASecond) {
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
  EXPECT_EQ(notices_,
            std::vector<std::string>{"metrics: more than 100 reports in a second: some are "
                                     "dropped, the newest are kept"});
}

TEST_F(Intake, OfALongFloodKeepsItsLimitEachSecond) {
  constexpr int kSeconds = 20;
  for (int second = 0; second < kSeconds; ++second) {
    for (int i = 0; i < 500; ++i) report("n=1");
    clock_.advance(std::chrono::seconds(1));
  }
  intake_.finish(clock_.now());

  EXPECT_LE(written().size(), (kSeconds + 1) * kMostReports);
  ASSERT_EQ(notices_.size(), 2U);
  EXPECT_EQ(notices_[1], "metrics: " + std::to_string(kSeconds * 500 - written().size()) +
                             " reports of the program were dropped");
}

TEST_F(Intake, WritesWaitingReportsWhenTheTaskEnds) {
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

TEST_F(Intake, IgnoresMalformedReportsWithOneNotice) {
  report("loss is \x1b[31m0.1");
  report("also=this?");
  report("rank=3");
  report("loss=nan");

  EXPECT_TRUE(written().empty());
  EXPECT_EQ(notices_,
            std::vector<std::string>{"metrics: ignored a malformed report: 'loss is ?[31m0.1' "
                                     "(expected NAME=NUMBER ...); the next ones are ignored "
                                     "without a message"});
}

TEST_F(Intake, IgnoresAReportThatIsTooLong) {
  report("a=1 " + std::string(kLongestReport, ' '));

  EXPECT_TRUE(written().empty());
  EXPECT_EQ(notices_.size(), 1U);
}

TEST_F(Intake, IgnoresNamesThatMusterMeasuresItself) {
  report("cpu_percent=5 loss=1");

  EXPECT_TRUE(values_of("cpu_percent").empty());
  EXPECT_EQ(values_of("loss"), std::vector<double>{1});
  EXPECT_EQ(notices_, std::vector<std::string>{
                          "metrics: ignored 'cpu_percent' in reports: Muster measures it itself"});
}

TEST_F(Intake, LimitsTheNumberOfNames) {
  for (size_t i = 0; i < kMostNames + 5; ++i) {
    report("n" + std::to_string(i) + "=1");
    clock_.advance(std::chrono::seconds(1));
  }
  report("n0=2 n200=2");

  EXPECT_EQ(written().size(), kMostNames + 1);
  EXPECT_EQ(values_of("n0"), (std::vector<double>{1, 2}));
  EXPECT_EQ(notices_,
            std::vector<std::string>{"metrics: ignored 'n200' and further names: a task may "
                                     "report 200 different names"});
}

// --- reports in printed lines

/// The reports in a stream that arrives in these pieces.
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

TEST(ReportInLine, IsFoundAfterALaunchersTagWithItsRank) {
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

TEST(ReportInLine, OtherTextBeforeTheMarkerIsNoReport) {
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

TEST(MetricLines, FindsReportsInAnyPieces) {
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

TEST(MetricLines, SkipsALineThatIsTooLong) {
  const std::string long_text(2 * kLongestReport, 'x');
  EXPECT_EQ(reports_in({"::metrics a=1 " + long_text, long_text, "::metrics b=2\n::metrics c=3\n"}),
            Reports{"c=3"});
}

TEST(MetricLines, IgnoresTextThatAProgressBarOverwrites) {
  std::vector<std::string> pieces;
  for (int i = 0; i < 1000; ++i) pieces.push_back("\r " + std::to_string(i) + " of 1000");
  pieces.emplace_back("\r::metrics a=1\n");

  EXPECT_EQ(reports_in(pieces), Reports{"a=1"});
}

TEST(MetricLines, FindNothingInBinaryOutput) {
  std::string bytes;
  for (int i = 0; i < 100'000; ++i) bytes += static_cast<char>(i * 7919 >> 3);

  EXPECT_EQ(reports_in({bytes, std::string(300, '\0'), bytes}), Reports{});
}

// --- all of a task's metrics

class Measuring : public testing::Test {
 protected:
  Measuring() {
    EXPECT_TRUE(base::make_private_folder(generated_));
    metrics_.start();
  }

  /// One turn of the supervisor's loop.
  void turn() {
    std::vector<pollfd> polled;
    metrics_.watch(polled);
    ::poll(polled.data(), polled.size(), metrics_.milliseconds_to_wait());
    metrics_.serve(polled);
  }

  std::string written() const {
    const auto text = base::read_file(folder_ / "metrics");
    return text ? *text : std::string();
  }

  base::TestFolder folder_;
  fs::path generated_ = folder_ / "generated";
  base::SystemClock clock_;
  TaskMetrics metrics_{TaskFolder{folder_.path()},
                       generated_,
                       {.interval = std::chrono::milliseconds(1)},
                       clock_,
                       [](const std::string&) {}};
};

TEST_F(Measuring, WritesSamples) {
  while (written().find("memory_bytes=") == std::string::npos) turn();

  EXPECT_NE(written().find("cpu_percent="), std::string::npos);
  metrics_.finish();
  EXPECT_EQ(metrics_.sampler(), -1);
}

TEST_F(Measuring, AHangingLookDelaysNoReportAndNoEnd) {
  // While the task has a TCP socket, each look is a process of its own. Stopped before it ends, it is
  // like one that waits for a file system.
  const base::UniqueFd tcp(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const IdleProcess task;
  pid_t look = -1;
  siginfo_t state{};
  while (state.si_code != CLD_STOPPED) {
    do turn();
    while (metrics_.sampler() < 0);
    look = metrics_.sampler();
    ASSERT_EQ(::kill(look, SIGSTOP), 0);
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(look), &state, WSTOPPED | WEXITED | WNOWAIT), 0);
  }
  const base::UniqueFd reporter(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = generated_ / launch::kReportSocket;
  ASSERT_LT(path.size(), sizeof address.sun_path);
  std::copy(path.begin(), path.end(), address.sun_path);
  ASSERT_EQ(::sendto(reporter.get(), "loss=1", 6, 0, reinterpret_cast<const sockaddr*>(&address),
                     sizeof address),
            6);

  while (written().find("loss=1") == std::string::npos) turn();

  metrics_.finish();
  EXPECT_EQ(::kill(look, 0), -1) << "it was reaped";
}

}  // namespace

}  // namespace muster::engine
