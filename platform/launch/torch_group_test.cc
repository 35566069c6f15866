#include "launch/torch_group.h"

#include <gtest/gtest.h>

namespace muster::launch {
namespace {

TEST(TorchEnvironment, SaysWhereTheMasterIsAndWhichRankTheTaskHas) {
  const std::map<std::string, std::string> expected{{"MASTER_ADDR", "ddp-master"},
                                                    {"MASTER_PORT", "12345"},
                                                    {"RANK", "2"},
                                                    {"WORLD_SIZE", "3"},
                                                    {"LOCAL_RANK", "0"}};

  EXPECT_EQ(torch_environment(
                {.master_host = "ddp-master", .master_port = 12345, .rank = 2, .world_size = 3}),
            expected);
}

}  // namespace
}  // namespace muster::launch
