#include "engine/shim/gpu_usage.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "engine/test_metrics.h"

namespace muster::engine {
namespace {

constexpr const char* kTwoAtWork =
    "A100|1000|GPU-a|400|97|250500|61\n"
    "A100|1000|GPU-b|100|50|100250|70\n"
    "A100|1000|GPU-c|0|3|50000|30";

class GpuUsageTest : public testing::Test {
 protected:
  ~GpuUsageTest() override { ::unsetenv("FAKE_NVML"); }

  static MetricValues look(const std::string& script, const std::vector<std::string>& names,
                           const std::string& library = MUSTER_FAKE_NVML) {
    ::setenv("FAKE_NVML", script.c_str(), 1);
    return GpuUsage(library, names).look();
  }
};

TEST_F(GpuUsageTest, IsThatOfTheNamedOnesTogetherAndTheHottestOfThem) {
  const MetricValues expected{{"gpu_percent", 147},
                              {"gpu_memory_bytes", 500},
                              {"gpu_memory_free_bytes", 1500},
                              {"gpu_power_watts", 350.75},
                              {"gpu_temperature_celsius", 70}};

  EXPECT_EQ(look(kTwoAtWork, {"0", "1"}), expected);
  EXPECT_EQ(look(kTwoAtWork, {"GPU-b", "GPU-a"}), expected);
}

TEST_F(GpuUsageTest, LeavesOutWhatAGpuDoesNotTell) {
  EXPECT_EQ(look("T4|1000|GPU-a|400|||\nT4||GPU-b||20||", {"0", "1"}),
            (MetricValues{
                {"gpu_percent", 20}, {"gpu_memory_bytes", 400}, {"gpu_memory_free_bytes", 600}}));
}

TEST_F(GpuUsageTest, LeavesOutAGpuThatIsNotThere) {
  EXPECT_EQ(look("T4|||||7|\nlost", {"0", "1", "2", "GPU-x"}),
            (MetricValues{{"gpu_power_watts", 0.007}}));
}

TEST_F(GpuUsageTest, IsNothingWithoutGpusALibraryOrADriver) {
  EXPECT_EQ(look(kTwoAtWork, {}), MetricValues{});
  EXPECT_EQ(look(kTwoAtWork, {"0"}, "/no/such/libnvidia-ml.so.1"), MetricValues{});
  EXPECT_EQ(look(kTwoAtWork, {"0"}, MUSTER_FAKE_NVML_INCOMPLETE), MetricValues{});
  EXPECT_EQ(look("no-driver", {"0"}), MetricValues{});
}

}  // namespace
}  // namespace muster::engine
