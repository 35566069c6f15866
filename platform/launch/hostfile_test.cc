#include "launch/hostfile.h"

#include <gtest/gtest.h>

namespace muster::launch {
namespace {

TEST(Hostfile, SaysTheSlotsAsEachMpiReadsThem) {
  const std::vector<SlotHost> hosts{{"dist-worker-0", 2}, {"dist-launcher", 1}};

  EXPECT_EQ(open_mpi_hostfile(hosts), "dist-worker-0 slots=2\ndist-launcher slots=1\n");
  EXPECT_EQ(hydra_hostfile(hosts), "dist-worker-0:2\ndist-launcher:1\n");
}

}  // namespace
}  // namespace muster::launch
