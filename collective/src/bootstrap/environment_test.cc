#include "bootstrap/environment.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "bootstrap/test_values.h"

namespace muster::collective {
namespace {

using testing::Environment;
using testing::lookup_in;

Result<Options> options_in(const Environment& environment, Options given = {}) {
  return bootstrap_from(lookup_in(environment), std::move(given), ::getpid());
}

// The variables that mpirun of Open MPI 4.1 sets for rank 1 of 2.
Environment local_mpirun() {
  return {{"OMPI_COMM_WORLD_RANK", "1"},
          {"OMPI_COMM_WORLD_SIZE", "2"},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
          {"PMIX_NAMESPACE", "1980432385"},
          {"PMIX_SERVER_URI3", "1980432384.0;tcp4://127.0.0.1:35489"}};
}

TEST(Environment, WithoutVariablesIsAWorldOfOne) {
  const auto options = options_in({});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->rank, 0);
  EXPECT_EQ(options->size, 1);
  EXPECT_TRUE(options->rendezvous.empty() && options->rendezvous_file.empty());
}

TEST(Environment, TakesRankAndSizeFromTheFirstLauncherThatSetsThem) {
  Environment all = {{"MUSTER_RENDEZVOUS", "n0:4000"},
                     {"MUSTER_RENDEZVOUS_KEY", "00"},
                     {"MUSTER_RANK", "1"},
                     {"MUSTER_WORLD_SIZE", "11"},
                     {"OMPI_COMM_WORLD_RANK", "2"},
                     {"OMPI_COMM_WORLD_SIZE", "12"},
                     {"PMI_RANK", "3"},
                     {"PMI_SIZE", "13"},
                     {"SLURM_PROCID", "4"},
                     {"SLURM_NTASKS", "14"},
                     {"RANK", "5"},
                     {"WORLD_SIZE", "15"}};
  int place = 1;
  for (const auto& [rank, size] : {std::pair{"MUSTER_RANK", "MUSTER_WORLD_SIZE"},
                                   {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                   {"PMI_RANK", "PMI_SIZE"},
                                   {"SLURM_PROCID", "SLURM_NTASKS"},
                                   {"RANK", "WORLD_SIZE"}}) {
    const auto options = options_in(all);
    ASSERT_TRUE(options) << options.error().to_string();
    EXPECT_EQ(options->rank, place) << rank;
    EXPECT_EQ(options->size, 10 + place) << size;
    EXPECT_EQ(options->rendezvous, "n0:4000");
    all.erase(rank);
    all.erase(size);
    ++place;
  }
}

TEST(Environment, YieldsToTheOptionsOfTheProgram) {
  const auto options = options_in({{"MUSTER_RANK", "1"},
                                   {"MUSTER_WORLD_SIZE", "2"},
                                   {"MUSTER_RENDEZVOUS", "a:1"},
                                   {"MUSTER_RENDEZVOUS_KEY", "00"},
                                   {"MUSTER_COLLECTIVE_TIMEOUT", "5"}},
                                  {.rank = 3,
                                   .size = 4,
                                   .rendezvous = "b:2",
                                   .key = "11",
                                   .timeout = std::chrono::milliseconds(7)});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->rank, 3);
  EXPECT_EQ(options->size, 4);
  EXPECT_EQ(options->rendezvous, "b:2");
  EXPECT_EQ(options->key, "11");
  EXPECT_EQ(options->timeout, std::chrono::milliseconds(7));
}

TEST(Environment, OfALocalMpirunNeedsNothingElse) {
  const auto options = options_in(local_mpirun());
  ASSERT_TRUE(options) << options.error().to_string();
  EXPECT_EQ(options->rank, 1);
  EXPECT_TRUE(options->rendezvous.empty());
  EXPECT_TRUE(options->rendezvous_file.starts_with("/tmp/muster-collective-"));
}

TEST(Environment, OfALocalMpirunMaySetARendezvous) {
  Environment environment = local_mpirun();
  environment["MUSTER_RENDEZVOUS"] = "127.81.2.1:4000";
  environment["MUSTER_RENDEZVOUS_KEY"] = "00";
  const auto options = options_in(environment);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->rendezvous, "127.81.2.1:4000");
  EXPECT_TRUE(options->rendezvous_file.empty());
}

TEST(Environment, ReadsTheTimeoutInSeconds) {
  EXPECT_EQ(options_in({{"MUSTER_COLLECTIVE_TIMEOUT", "2.5"}})->timeout,
            std::chrono::milliseconds(2500));
  EXPECT_EQ(options_in({})->timeout, std::nullopt);
}

TEST(Environment, NamesTheInvalidVariableAndItsValue) {
  Environment spread = local_mpirun();
  spread["OMPI_COMM_WORLD_LOCAL_SIZE"] = "1";
  Environment nameless = local_mpirun();
  nameless.erase("PMIX_NAMESPACE");
  struct Row {
    Environment environment;
    std::string message;
  };
  for (const Row& row : {
           Row{{{"MUSTER_RANK", "1"}}, "MUSTER_RANK is set, but MUSTER_WORLD_SIZE is not"},
           Row{{{"RANK", "one"}, {"WORLD_SIZE", "2"}}, "RANK is 'one', not a whole number"},
           Row{{{"RANK", "0"}, {"WORLD_SIZE", "-2"}}, "WORLD_SIZE is '-2', not a whole number"},
           Row{{{"RANK", "2"}, {"WORLD_SIZE", "2"}}, "rank 2 is not in a world of 2"},
           Row{{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}},
               "SLURM_NTASKS sets a world of 4 ranks, but no rendezvous is set"},
           Row{spread, "OMPI_COMM_WORLD_SIZE sets a world of 2 ranks, but no rendezvous is set"},
           Row{nameless,
               "this launcher does not identify its run to the ranks (PMIX_NAMESPACE and "
               "PMIX_SERVER_URI are not set)"},
           Row{{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MUSTER_RENDEZVOUS", "n0:4000"}},
               "the rendezvous n0:4000 has no key"},
           Row{{{"MUSTER_COLLECTIVE_TIMEOUT", "0"}},
               "MUSTER_COLLECTIVE_TIMEOUT is '0', not a number of seconds above 0"},
           Row{{{"MUSTER_COLLECTIVE_TIMEOUT", "1m"}},
               "MUSTER_COLLECTIVE_TIMEOUT is '1m', not a number of seconds above 0"},
       }) {
    const auto options = options_in(row.environment);
    ASSERT_FALSE(options) << row.message;
    EXPECT_EQ(options.error().code, ErrorCode::kConfiguration);
    EXPECT_EQ(options.error().message, row.message);
  }
}

TEST(Environment, OfALocalRunOfSlurmOrTorchrunNeedsNothingElse) {
  for (const Environment& environment : {Environment{{"SLURM_PROCID", "1"},
                                                     {"SLURM_NTASKS", "2"},
                                                     {"SLURM_NNODES", "4"},
                                                     {"SLURM_STEP_NUM_NODES", "1"},
                                                     {"SLURM_JOB_ID", "7"},
                                                     {"SLURM_STEP_ID", "0"}},
                                         Environment{{"RANK", "1"},
                                                     {"WORLD_SIZE", "2"},
                                                     {"LOCAL_WORLD_SIZE", "2"},
                                                     {"MASTER_ADDR", "127.0.0.1"},
                                                     {"MASTER_PORT", "29500"}}}) {
    const auto options = options_in(environment);
    ASSERT_TRUE(options) << options.error().to_string();
    EXPECT_EQ(options->rank, 1);
    EXPECT_TRUE(options->rendezvous_file.starts_with("/tmp/muster-collective-"));
  }
}

TEST(Environment, OfTorchrunOnSeveralHostsMeetsOnThePortAfterTheMasters) {
  Environment environment = {{"RANK", "1"},
                             {"WORLD_SIZE", "4"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"MASTER_ADDR", "n0"},
                             {"MASTER_PORT", "29500"}};
  EXPECT_EQ(options_in(environment).error().message, "the rendezvous n0:29501 has no key");
  environment["MUSTER_RENDEZVOUS_KEY"] = "00";
  EXPECT_EQ(options_in(environment)->rendezvous, "n0:29501");
  environment["MASTER_ADDR"] = "fd00::1";
  EXPECT_EQ(options_in(environment)->rendezvous, "[fd00::1]:29501");
}

TEST(Environment, ReadsTheOptionsThatTheProgramLeavesUnset) {
  const Environment environment = {{"MUSTER_COLLECTIVE_TRANSPORT", "tcp"},
                                   {"MUSTER_COLLECTIVE_ALGORITHM", "ring"},
                                   {"MUSTER_COLLECTIVE_STREAMS", "4"},
                                   {"MUSTER_COLLECTIVE_HOST_ID", "blue"},
                                   {"MUSTER_COLLECTIVE_ARENA_BYTES", "1099511627776"}};
  const auto read = options_in(environment);
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->transport, "tcp");
  EXPECT_EQ(read->algorithm, "ring");
  EXPECT_EQ(read->streams, 4);
  EXPECT_EQ(read->host_id, "blue");
  EXPECT_EQ(read->arena_bytes, std::uint64_t{1} << 40);
  const auto made = options_in(environment, {.host_id = "red",
                                             .transport = "shm",
                                             .algorithm = "direct",
                                             .streams = 1,
                                             .arena_bytes = 5});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->transport, "shm");
  EXPECT_EQ(made->algorithm, "direct");
  EXPECT_EQ(made->streams, 1);
  EXPECT_EQ(made->host_id, "red");
  EXPECT_EQ(made->arena_bytes, 5u);
}

TEST(Environment, RejectsUnknownTransportsAlgorithmsAndStreams) {
  struct Row {
    Environment environment;
    std::string message;
  };
  for (const Row& row : {
           Row{{{"MUSTER_COLLECTIVE_TRANSPORT", "rdma"}},
               "unknown transport 'rdma': expected one of auto, shm, tcp, mpi, nccl"},
           Row{{{"MUSTER_COLLECTIVE_ALGORITHM", "tree"}},
               "unknown algorithm 'tree': expected one of auto, direct, ring, rabenseifner, "
               "doubling"},
           Row{{{"MUSTER_COLLECTIVE_ALGORITHM", "exchange"}},
               "unknown algorithm 'exchange': expected one of auto, direct, ring, rabenseifner, "
               "doubling"},
           Row{{{"MUSTER_COLLECTIVE_STREAMS", "17"}},
               "invalid number of streams 17: expected 1 to 16"},
           Row{{{"MUSTER_COLLECTIVE_STREAMS", "0"}},
               "invalid number of streams 0: expected 1 to 16"},
           Row{{{"MUSTER_COLLECTIVE_STREAMS", "two"}},
               "MUSTER_COLLECTIVE_STREAMS is 'two', not a whole number"},
           Row{{{"MUSTER_COLLECTIVE_ARENA_BYTES", "1G"}},
               "MUSTER_COLLECTIVE_ARENA_BYTES is '1G', not a whole number of bytes"},
           Row{{{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}},
               "this launcher does not identify its run to the ranks (this process has no parent "
               "hydra_pmi_proxy)"},
           Row{{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_NNODES", "2"}},
               "SLURM_NTASKS sets a world of 4 ranks, but no rendezvous is set"},
       }) {
    const auto options = options_in(row.environment);
    ASSERT_FALSE(options) << row.message;
    EXPECT_EQ(options.error().code, ErrorCode::kConfiguration);
    EXPECT_EQ(options.error().message, row.message);
  }
}

TEST(Environment, AdvisesWhatToSetIfTheKeyIsMissing) {
  const auto options =
      options_in({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MUSTER_RENDEZVOUS", "n0:4000"}});
  EXPECT_EQ(options.error().advice,
            "set MUSTER_RENDEZVOUS_KEY on all ranks to the same secret, as from: openssl rand "
            "-hex 32");
}

}  // namespace
}  // namespace muster::collective
