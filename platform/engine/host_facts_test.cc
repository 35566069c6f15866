#include "engine/host_facts.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::engine {
namespace {

TEST(DeclaredGpus, AreACountAModelAndAMemory) {
  const std::vector<std::pair<std::string, DeclaredGpus>> cases{
      {"0", {.count = 0}},
      {"2", {.count = 2}},
      {"64", {.count = 64}},
      {"8:A100", {.count = 8, .model = "A100"}},
      {"1:NVIDIA H100 80GB HBM3:80G",
       {.count = 1, .model = "NVIDIA H100 80GB HBM3", .memory_bytes = int64_t{80} << 30}},
  };
  for (const auto& [text, expected] : cases) {
    const auto parsed = parse_declared_gpus(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(*parsed, expected) << text;
  }
}

TEST(DeclaredGpus, AreRefusedWithEveryFaultOfTheText) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases{
      {"", {"count"}},
      {"two", {"count"}},
      {"-1", {"count"}},
      {"+1", {"count"}},
      {"1.5", {"count"}},
      {"65", {"count"}},
      {"99999999999999999999", {"count"}},
      {"2:", {"model"}},
      {"2::", {"model", "memory"}},
      {"2::16G", {"model"}},
      {"2:T4:0", {"memory"}},
      {"2:T4:-1G", {"memory"}},
      {"2:T4:99999999999T", {"memory"}},
      {"2:T4:16G:", {""}},
      {"x:\n:y:z", {"count", "model", "memory", ""}},
      {"2:" + std::string(97, 'a'), {"model"}},
  };
  for (const auto& [text, fields] : cases) {
    const auto parsed = parse_declared_gpus(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, base::ErrorCode::kInvalid);
    std::vector<std::string> named;
    for (const base::Fault& fault : parsed.error().faults) named.push_back(fault.field);
    EXPECT_EQ(named, fields) << text;
  }
}

TEST(DeclaredGpus, AFaultNamesTheValueAndTheBound) {
  EXPECT_EQ(parse_declared_gpus("65").error().faults[0].what,
            "'65' is not a number of GPUs from 0 to 64");
}

}  // namespace
}  // namespace muster::engine
