#include "engine/metric_log.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "base/files.h"
#include "engine/test_metrics.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

class MetricFile : public testing::Test {
 protected:
  MetricFile() {
    std::string pattern = testing::TempDir() + "metricsXXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~MetricFile() override { fs::remove_all(folder_); }

  fs::path file() const { return folder_ / "metrics"; }
  void put(const std::string& text) { ASSERT_TRUE(base::write_file(file(), text)); }

  static std::string lines(int64_t first, int64_t end) {
    std::string text;
    for (int64_t i = first; i < end; ++i) text += encode_sample(loss_at(i, static_cast<double>(i)));
    return text;
  }

  fs::path folder_;
};

TEST(MetricSample, IsReadBackAsItWas) {
  const MetricSample samples[] = {
      {.time = at_second(1), .rank = 3, .values = {{"loss", 0.1}, {"epoch", 3}, {"tiny", 5e-324}}},
      {.time = base::Time(std::chrono::nanoseconds(1769861696123456789)),
       .rank = {},
       .values = {{"cpu_percent", 93.25}, {"x", -1e300}}},
  };
  for (const MetricSample& sample : samples) {
    const std::string line = encode_sample(sample);

    ASSERT_TRUE(line.ends_with("\n"));
    EXPECT_EQ(decode_sample(line.substr(0, line.size() - 1)), sample) << line;
  }
}

TEST(MetricSample, IsNothingElse) {
  for (const char* line : {"", "x", "1", "1 -x a=1", "1 x a=1", "1 - a", "1 - =1", "1 - a=1x",
                           "1 - 1a=1", "1 - a=0x10", "a=1"}) {
    const auto sample = decode_sample(line);
    EXPECT_TRUE(!sample || sample->values.empty()) << line;
  }
}

TEST(ReportedSample, TakesNamesAndNumbersAndTheRank) {
  const struct {
    const char* text;
    std::optional<int> rank;
    MetricValues values;
  } rows[] = {
      {"loss=0.183", {}, {{"loss", 0.183}}},
      {"epoch=3 epochs=10 rank=1", 1, {{"epoch", 3}, {"epochs", 10}}},
      {" \tepoch=3,  val/loss=-1e-3 \r\n", {}, {{"epoch", 3}, {"val/loss", -1e-3}}},
      {"loss=nan gap=inf epoch=1", {}, {{"epoch", 1}}},
      {"loss=nan", {}, {}},
  };
  for (const auto& row : rows) {
    const auto sample = reported_sample(row.text, at_second(5));

    ASSERT_TRUE(sample) << row.text;
    EXPECT_EQ(*sample,
              (MetricSample{.time = at_second(5), .rank = row.rank, .values = row.values}));
  }
}

TEST(ReportedSample, IsNotMadeOfAnythingElse) {
  for (const char* text :
       {"", " ", "loss", "loss=", "loss=low", "loss=1 and more", "rank=1", "rank=-1 a=1",
        "rank=x a=1", "0loss=1", "loss=1.5.2", "lo\x1bss=1", "loss=1;epoch=2"}) {
    EXPECT_FALSE(reported_sample(text, at_second(5))) << text;
  }
}

TEST_F(MetricFile, HasNoSamplesBeforeItIsThere) {
  MetricReader reader(file());

  const auto read = reader.read();

  ASSERT_TRUE(read);
  EXPECT_TRUE(read->samples.empty());
  EXPECT_FALSE(read->anew);
}

TEST_F(MetricFile, ReturnsTheLinesSinceTheLastCall) {
  MetricReader reader(file());
  put(lines(0, 2));
  ASSERT_EQ(reader.read()->samples.size(), 2U);
  ASSERT_TRUE(reader.read()->samples.empty());
  put(lines(0, 3));

  const auto read = reader.read();

  EXPECT_EQ(read->samples, std::vector<MetricSample>{loss_at(2, 2)});
  EXPECT_FALSE(read->anew);
}

TEST_F(MetricFile, ReturnsOnlyCompleteLines) {
  MetricReader reader(file());
  const std::string text = lines(0, 2);
  for (size_t cut = 0; cut <= text.find('\n'); ++cut) {
    put(text.substr(0, cut));
    ASSERT_TRUE(reader.read()->samples.empty()) << cut;
  }
  put(text);

  EXPECT_EQ(reader.read()->samples.size(), 2U);
}

TEST_F(MetricFile, ReportsThatItWasWrittenAnewAndReturnsAllLines) {
  // Shorter than before, of equal length, and longer: only the content matters.
  for (const int64_t last : {4, 6, 20}) {
    MetricReader reader(file());
    put(lines(0, 6));
    ASSERT_EQ(reader.read()->samples.size(), 6U);
    put(lines(1, last + 1));

    const auto read = reader.read();

    EXPECT_TRUE(read->anew) << last;
    EXPECT_EQ(read->samples.size(), static_cast<size_t>(last)) << last;
    EXPECT_TRUE(reader.read()->samples.empty()) << last;
  }
}

TEST_F(MetricFile, SkipsLinesThatAreNotSamples) {
  MetricReader reader(file());
  put(lines(0, 1) + "nonsense\n\n" + std::string(5000, 'x') + "\n" + lines(1, 2));

  EXPECT_EQ(reader.read()->samples, (std::vector<MetricSample>{loss_at(0, 0), loss_at(1, 1)}));
}

TEST_F(MetricFile, OfAStrangersMakingTakesNoMoreMemoryThanItsBound) {
  MetricReader reader(file());
  put(lines(0, 1));
  ASSERT_EQ(reader.read()->samples.size(), 1U);
  fs::resize_file(file(), 1ULL << 40);  // a hole: no line ends in it

  const auto read = reader.read();

  ASSERT_TRUE(read);
  EXPECT_TRUE(read->samples.empty());
}

}  // namespace
}  // namespace muster::engine
