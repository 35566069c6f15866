#include "launch/hostfile.h"

#include <gtest/gtest.h>

#include "launch/mpi_environment.h"

namespace muster::launch {
namespace {

const std::vector<SlotHost> kHosts{{"dist-worker-0", 2}, {"dist-launcher", 1}};

TEST(Hostfile, SaysTheSlotsAsEachMpiReadsThem) {
  EXPECT_EQ(open_mpi_hostfile(kHosts), "dist-worker-0 slots=2\ndist-launcher slots=1\n");
  EXPECT_EQ(hydra_hostfile(kHosts), "dist-worker-0:2\ndist-launcher:1\n");
}

TEST(HydraEnvironment, LeadsIntelMpiAndMpichToTheHostfileAndTheKeys) {
  const auto variables = hydra_environment("/generated");

  for (const char* prefix : {"I_MPI_HYDRA_", "HYDRA_"}) {
    EXPECT_EQ(variables.at(std::string(prefix) + "HOST_FILE"), "/generated/hostfile.intel");
  }
  EXPECT_EQ(variables.at("I_MPI_HYDRA_BOOTSTRAP"), "ssh");
  EXPECT_EQ(variables.at("HYDRA_LAUNCHER"), "ssh");
  EXPECT_EQ(variables.at("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS"), "-F /generated/ssh/config");
  EXPECT_EQ(variables.at("HYDRA_LAUNCHER_EXTRA_ARGS"), "-F /generated/ssh/config");
}

}  // namespace
}  // namespace muster::launch
