#include "engine/container/hosts.h"

#include <gtest/gtest.h>

namespace muster::engine {
namespace {

TEST(Preparation, ShowsTheProgressOfAPull) {
  EXPECT_EQ(
      progress_fact("node-1", "horovod:0.28",
                    {.status = "Downloading", .done_bytes = 312'500'000, .all_bytes = 940'000'000}),
      (job::FetchesImage{
          .node = "node-1", .image = "horovod:0.28", .done_megabytes = 312, .all_megabytes = 940}));
  EXPECT_EQ(progress_fact("node-1", "horovod:0.28", {.status = "Pulling fs layer"}),
            (job::FetchesImage{.node = "node-1", .image = "horovod:0.28"}));
}

}  // namespace
}  // namespace muster::engine
