#include "control/sole_mpirun.h"

#include <gtest/gtest.h>

namespace muster::control {
namespace {

job::JobSpec running(std::vector<std::string> command) {
  return {.name = "dist", .kind = job::Kind::kMpi, .command = std::move(command), .workers = 2};
}

TEST(SoleMpirun, IsAnMpirunByAnyOfItsNamesOrAShellThatRunsJustThat) {
  for (const auto& command :
       std::vector<std::vector<std::string>>{{"mpirun", "train"},
                                             {"/opt/openmpi/bin/mpirun", "-np", "2", "train"},
                                             {"mpiexec.hydra", "train"},
                                             {"mpirun.openmpi", "train"},
                                             {"sh", "-c", "mpirun -np 2 train"},
                                             {"/bin/bash", "-c", "exec mpirun -np 2 train"}}) {
    EXPECT_TRUE(sole_mpirun(running(command))) << command.front();
  }
}

TEST(SoleMpirun, IsNoScriptNoOtherProgramAndNotWhatAnImageRuns) {
  for (const auto& command : std::vector<std::vector<std::string>>{
           {"horovodrun", "-np", "2", "train"},
           {"./run.sh"},
           {"sh", "-c", "mpirun -np 1 prepare && mpirun -np 4 train"},
           {"sh", "-c", "for i in 1 2; do mpirun train; done"},
           {"sh", "-c", "mpirun -np $RANKS train"},
           {"sh", "run.sh"},
           {}}) {
    EXPECT_FALSE(sole_mpirun(running(command))) << (command.empty() ? "" : command.back());
  }
  job::JobSpec handed_to_the_image = running({"mpirun", "train"});
  handed_to_the_image.replaces_entrypoint = false;
  EXPECT_FALSE(sole_mpirun(handed_to_the_image));
  job::JobSpec of_another_kind = running({"mpirun", "train"});
  of_another_kind.kind = job::Kind::kSingle;
  EXPECT_FALSE(sole_mpirun(of_another_kind));
}

TEST(SoleMpirun, SaysHowManyRanksItAsksForWhereThatIsCertain) {
  const struct {
    std::vector<std::string> command;
    std::optional<int> ranks;
  } cases[] = {
      {{"mpirun", "-np", "4", "train"}, 4},
      {{"mpiexec", "-n", "2", "train"}, 2},
      {{"mpirun", "--np", "2", "train"}, 2},
      {{"mpirun", "train"}, std::nullopt},
      {{"mpirun", "-np", "4", "train", "-n", "7"}, std::nullopt},
      {{"mpirun", "-np", "many", "train"}, std::nullopt},
      {{"mpirun", "-np", "1", "a", ":", "-np", "3", "b"}, std::nullopt},
      {{"mpirun", "-np"}, std::nullopt},
  };
  for (const auto& known : cases) {
    const auto found = sole_mpirun(running(known.command));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->ranks, known.ranks) << known.command.back();
  }
}

TEST(SoleMpirun, PlacesItsRanksWhereItSaysSoInAnyWay) {
  for (const auto& options :
       std::vector<std::vector<std::string>>{{"--host", "localhost"},
                                             {"-H", "a,b"},
                                             {"--host=a:4"},
                                             {"--hostfile", "mine"},
                                             {"-f", "hosts.txt"},
                                             {"--oversubscribe"},
                                             {"-ppn", "4"},
                                             {"-npernode", "4"},
                                             {"--map-by", "ppr:4:node"},
                                             {"--map-by", "slot:OVERSUBSCRIBE"},
                                             {"-mca", "rmaps_base_oversubscribe", "1"},
                                             {"-np", "1", "a", ":", "-np", "1", "b"}}) {
    std::vector<std::string> command{"mpirun"};
    command.insert(command.end(), options.begin(), options.end());
    command.emplace_back("train");
    EXPECT_TRUE(sole_mpirun(running(command))->places_ranks) << options.front();
  }
  job::JobSpec by_variable = running({"mpirun", "train"});
  by_variable.environment = {{"I_MPI_PERHOST", "4"}};
  EXPECT_TRUE(sole_mpirun(by_variable)->places_ranks);
}

TEST(SoleMpirun, PlacesNoneWhereItLeavesThatToTheJobsHostfile) {
  // The command of the documents.
  for (const auto& options : std::vector<std::vector<std::string>>{
           {},
           {"--allow-run-as-root", "-np", "2", "--hostfile", "/generated/hostfile", "-bind-to",
            "none", "-map-by", "slot", "-x", "NCCL_DEBUG=INFO", "-mca", "pml", "ob1", "-mca", "btl",
            "^openib"},
           {"-machinefile", "/etc/mpi/hostfile"}}) {
    std::vector<std::string> command{"mpirun"};
    command.insert(command.end(), options.begin(), options.end());
    command.emplace_back("train");
    EXPECT_FALSE(sole_mpirun(running(command))->places_ranks) << command.size();
  }
}

}  // namespace
}  // namespace muster::control
