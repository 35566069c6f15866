#include "launch/mpi_hosts.h"

#include <gtest/gtest.h>

namespace muster::launch {
namespace {

TEST(Hostfile, HasTheSlotsInTheFormatOfEachMpi) {
  const std::vector<SlotHost> hosts{{"dist-worker-0", 2}, {"dist-launcher", 1}};

  EXPECT_EQ(open_mpi_hostfile(hosts), "dist-worker-0 slots=2\ndist-launcher slots=1\n");
  EXPECT_EQ(hydra_hostfile(hosts), "dist-worker-0:2\ndist-launcher:1\n");
}

}  // namespace
namespace {

using Command = std::vector<std::string>;

TEST(RankPrefix, IsDetectedInTheOptionsOfALauncher) {
  for (const Command& command : {Command{"mpiexec", "-l", "./train"},
                                 {"/usr/bin/mpiexec.hydra", "-n", "2", "-l", "./train"},
                                 {"mpirun", "-genv", "A", "1", "-prepend-rank", "-np", "4", "x"},
                                 {"mpiexec.mpich", "--prepend-rank", "x"},
                                 {"sh", "-c", "cd /data && mpiexec -np 2 -l ./train; echo done"}}) {
    EXPECT_TRUE(prepends_rank(command)) << command.front();
  }
}

TEST(RankPrefix, IsNotDetectedInOptionsOfTheProgram) {
  for (const Command& command : {Command{},
                                 {"mpiexec"},
                                 {"mpiexec", "-n", "2", "bash", "-l"},
                                 {"mpiexec", "-n", "2", "./train", "-prepend-rank"},
                                 {"mpiexec", "-unknown", "value", "-l", "x"},
                                 {"./train", "-l"},
                                 {"bash", "-l", "-c", "mpiexec -n 2 ./train"}}) {
    EXPECT_FALSE(prepends_rank(command));
  }
}

}  // namespace
}  // namespace muster::launch
