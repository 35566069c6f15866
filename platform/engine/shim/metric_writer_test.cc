#include "engine/shim/metric_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/files.h"
#include "engine/test_full_disk.h"
#include "engine/test_metrics.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

MetricSample sample(int64_t second, const std::string& name, std::optional<int> rank = {}) {
  return {.time = at_second(second), .rank = rank, .values = {{name, static_cast<double>(second)}}};
}

/// The seconds of the lines in `log` that have `kind` in them.
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

TEST(ThinnedLog, IsTheSameWhereItIsShortEnough) {
  const std::string log = log_of(0, 100, 1);

  EXPECT_EQ(thinned_log(log, at_second(100), log.size()), log);
}

TEST(ThinnedLog, LeavesOutWhatStandsCloseButNotOfTheLastMinute) {
  const std::string log = log_of(0, 201, 1);

  const auto seconds = seconds_in(thinned_log(log, at_second(200), log.size() * 2 / 3));

  std::vector<int64_t> expected;
  for (int64_t second = 0; second < 140; second += 2) expected.push_back(second);
  for (int64_t second = 140; second <= 200; ++second) expected.push_back(second);
  EXPECT_EQ(seconds, expected);
}

TEST(ThinnedLog, LeavesAllOfThePastEquallyDenseHoweverOftenItIsThinned) {
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
  EXPECT_LE(seconds.front(), widest) << "the beginning is not forgotten";
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

TEST(ThinnedLog, ThinsTheLastMinuteToWhereThatIsWhatFillsIt) {
  std::string log;
  for (int i = 0; i < 1000; ++i) log += encode_sample(sample(100 + i / 100, "a"));

  const std::string thin = thinned_log(log, at_second(110), 1000);

  EXPECT_LE(thin.size(), 1000U);
  EXPECT_EQ(seconds_in(thin).back(), 109);
  EXPECT_GT(seconds_in(thin).size(), 4U);
}

TEST(ThinnedLog, DropsTheOldestWhereEveryLineIsOneOfItsKind) {
  std::string log;
  for (int rank = 0; rank < 100; ++rank) log += encode_sample(sample(rank, "a", rank));

  const std::string thin = thinned_log(log, at_second(100), 1000);

  EXPECT_LE(thin.size(), 1000U);
  EXPECT_EQ(seconds_in(thin).back(), 99);
}

TEST(ThinnedLog, OfNothingIsNothing) {
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

TEST_F(Writing, MakesAFileForItsOwnerAloneWithTheFirstSample) {
  MetricWriter writer(file());
  EXPECT_FALSE(fs::exists(file()));

  writer.write(sample(1, "a"));

  EXPECT_EQ(fs::status(file()).permissions(), fs::perms(0600));
  EXPECT_EQ(MetricReader(file()).read()->samples, std::vector<MetricSample>{sample(1, "a")});
}

TEST_F(Writing, NeverExceedsItsBoundAndAlwaysEndsWithTheNewest) {
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
  EXPECT_LT(all.front().time, at_second(300)) << "old ones are fewer, and not gone";
  EXPECT_EQ(fs::status(file()).permissions(), fs::perms(0600));
}

TEST_F(Writing, LosesWhatAFullDiskDoesNotTakeAndNoOtherLineWithIt) {
  MetricWriter writer(file());
  writer.write(sample(1, "a"));
  {
    const FullDisk full(fs::file_size(file()) + 5);
    writer.write(sample(2, "a"));
  }
  writer.write(sample(3, "a"));

  EXPECT_EQ(seconds_in(*base::read_file(file())), (std::vector<int64_t>{1, 3}));
}

TEST_F(Writing, KeepsWhatThereIsWhereADiskIsTooFullToThinIt) {
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

TEST_F(Writing, WithoutAFolderGoesOn) {
  MetricWriter writer(folder_ / "missing" / "metrics");

  writer.write(sample(1, "a"));

  EXPECT_FALSE(fs::exists(folder_ / "missing"));
}

}  // namespace
}  // namespace muster::engine
