#include "engine/shim/sampler.h"

#include <gtest/gtest.h>

namespace muster::engine {
namespace {

TEST(SamplerPlan, IsReadBackFromItsArguments) {
  const SamplerPlan plan{
      .shim = 42,
      .started = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(123456789012345)),
      .interval = std::chrono::seconds(10),
      .nvml = "libnvidia-ml.so.1",
      .gpus = {"0", "GPU-1"}};

  const auto read = read_sampler_plan(arguments_of(plan));

  ASSERT_TRUE(read);
  EXPECT_EQ(*read, plan);
}

TEST(SamplerPlan, IsNotReadFromAnythingElse) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"1"},
                                             {"1", "2", "3"},
                                             {"x", "2", "3", ""},
                                             {"1", "x", "3", ""},
                                             {"1", "2", "0", ""},
                                             {"1", "2", "-1", ""},
                                             {"", "", "", ""}}) {
    EXPECT_FALSE(read_sampler_plan(arguments));
  }
}

}  // namespace
}  // namespace muster::engine
