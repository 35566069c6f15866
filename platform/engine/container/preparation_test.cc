#include "engine/container/preparation.h"

#include <gtest/gtest.h>

namespace muster::engine {
namespace {

TEST(Preparation, SaysHowMuchOfAnImageIsThere) {
  EXPECT_EQ(
      progress_text("node-1", "horovod:0.28",
                    {.status = "Downloading", .done_bytes = 312'500'000, .all_bytes = 940'000'000}),
      "node-1 fetches horovod:0.28 (312 of 940 MB)");
  EXPECT_EQ(progress_text("node-1", "horovod:0.28", {.status = "Pulling fs layer"}),
            "node-1 fetches horovod:0.28");
}

}  // namespace
}  // namespace muster::engine
