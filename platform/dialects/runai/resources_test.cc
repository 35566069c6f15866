#include "dialects/runai/resources.h"

#include "dialects/runai/runai.h"
#include "dialects/runai/submission_fixture.h"

namespace muster::dialects::runai {

namespace {

using job::Kind;

job::JobSpec spec_of(const std::string& kind, const Words& more) {
  return asked_by(dist_with(kind, more)).spec;
}

TEST(RunaiMaster, OfAnMpiJobIsALauncherWithoutClaims) {
  const job::JobSpec spec =
      spec_of("mpi", {"--workers=3", "--slots-per-worker=2", "-g=1", "--cpu=4"});
  EXPECT_EQ(spec.kind, Kind::kMpi);
  EXPECT_EQ(spec.workers, 3);
  EXPECT_EQ(spec.slots_per_worker, 2);
  EXPECT_EQ(spec.leader, job::RoleSpec());
  EXPECT_EQ(spec.leader_slots, 0);
  EXPECT_EQ(spec.annotations.at(kWorkload), "mpi");
}

TEST(RunaiMaster, OfAPyTorchJobClaimsTheSameAsAWorker) {
  const job::JobSpec spec = spec_of(
      "pytorch", {"--workers=2", "-g=1", "--memory=1G", "--command", "--", "python3", "train.py"});
  EXPECT_EQ(spec.kind, Kind::kTorch);
  EXPECT_EQ(spec.workers, 2);
  EXPECT_EQ(spec.command, (Words{"python3", "train.py"}));
  EXPECT_EQ(spec.leader, (job::RoleSpec{.resources = spec.resources}));
  EXPECT_EQ(spec.resources.gpus, 1);
  EXPECT_EQ(spec.annotations.at(kWorkload), "pytorch");
}

TEST(RunaiMaster, OfATensorFlowJobIsAChiefWithoutParameterServers) {
  const job::JobSpec spec = spec_of("tf", {"--workers=2", "-g=1"});
  EXPECT_EQ(spec.kind, Kind::kGrpc);
  EXPECT_EQ(spec.workers, 2);
  EXPECT_EQ(spec.parameter_servers, 0);
  EXPECT_EQ(spec.leader.resources.gpus, 1);
  EXPECT_EQ(spec.annotations.at(kWorkload), "tf");
}

TEST(RunaiMaster, MayHaveItsOwnNumberOfGpus) {
  EXPECT_EQ(spec_of("mpi", {"-g=1", "--master-gpu=2"}).leader.resources, job::Resources{.gpus = 2});
  const job::Resources master =
      spec_of("pytorch", {"-g=1", "--cpu=2", "--master-gpu=0.5"}).leader.resources;
  EXPECT_EQ(master, (job::Resources{.gpu_share_milli = 500, .cpu_milli = 2000}));
}

TEST(RunaiMaster, ItsArgumentsReplaceTheJobsArguments) {
  const job::JobSpec old_form = spec_of(
      "pytorch", {"--command=python3", "--args=train.py", "--master-args", "main.py --lr '0.1 x'"});
  EXPECT_EQ(old_form.command, (Words{"python3", "train.py"}));
  EXPECT_EQ(old_form.leader.command, (Words{"python3", "main.py", "--lr", "0.1 x"}));

  const job::JobSpec new_form =
      spec_of("pytorch", {"--master-args=--log", "--command", "--", "python3", "train.py"});
  EXPECT_EQ(new_form.leader.command, (Words{"python3", "train.py", "--log"}));

  const job::JobSpec of_the_image = spec_of("pytorch", {"--master-args=--log"});
  EXPECT_EQ(of_the_image.leader.arguments, Words{"--log"});
  EXPECT_TRUE(of_the_image.leader.command.empty());

  EXPECT_EQ(spec_of("mpi", {"--master-args=-np 2"}).arguments, (Words{"-np", "2"}));
}

TEST(RunaiMaster, ArgumentsThatCannotBeReplacedAreAFault) {
  EXPECT_EQ(fault_of(dist_with("pytorch", {"--master-args=--log", "--", "--lr", "1"})),
            "--master-args cannot replace the arguments of the image's own command; give the "
            "command with --command");
  EXPECT_EQ(fault_of(dist_with("mpi", {"--master-args=--log", "--", "--lr", "1"})),
            "--master-args: only the launcher runs the command; give its arguments after '--'");
  EXPECT_EQ(fault_of(dist_with("pytorch", {"--master-args=a\\b"})),
            "--master-args 'a\\b' has a '\\' that is not before a quote or a '\\'");
}

TEST(RunaiMaster, MayHaveItsOwnVariables) {
  const job::JobSpec spec =
      spec_of("pytorch", {"-e", "A=1", "--master-environment=A=2", "--master-environment=B=-"});
  EXPECT_EQ(spec.leader.environment, (std::map<std::string, std::string>{{"A", "2"}}));
  EXPECT_EQ(fault_of(dist_with("pytorch", {"-e", "A=1", "--master-environment=A=-"})),
            "--master-environment 'A=-': a variable set by -e cannot be removed from the master; "
            "give it another value");
}

TEST(RunaiMaster, DifferentNumbersOfReplicasMakeAnElasticJob) {
  struct ReplicaCase {
    Words flags;
    int workers;
    std::optional<int> least;
  };
  const ReplicaCase cases[] = {
      {{"--min-replicas=3", "--max-replicas=3"}, 3, {}},
      {{"--max-replicas=3"}, 3, {}},
      {{"--min-replicas=1", "--max-replicas=3"}, 3, 1},
      {{"--workers=1", "--max-replicas=3"}, 3, 1},
      {{"--workers=3", "--min-replicas=2"}, 3, 2},
      {{"--workers=2", "--min-replicas=0", "--max-replicas=3"}, 3, 0},
  };
  for (const ReplicaCase& one : cases) {
    const job::JobSpec spec = spec_of("pytorch", one.flags);
    EXPECT_EQ(spec.workers, one.workers) << one.flags.front();
    EXPECT_EQ(spec.scheduling.min_workers, one.least) << one.flags.front();
  }
}

TEST(RunaiMaster, InvalidNumbersOfReplicasAreAFault) {
  const std::string between = " is not between --min-replicas and --max-replicas, ";
  EXPECT_EQ(fault_of(dist_with("pytorch", {"--workers=5", "--max-replicas=3"})),
            "--workers 5" + between + "3 and 3");
  EXPECT_EQ(fault_of(dist_with("pytorch", {"--workers=1", "--min-replicas=2", "--max-replicas=3"})),
            "--workers 1" + between + "2 and 3");
  EXPECT_EQ(fault_of(dist_with("pytorch", {"--min-replicas=4", "--max-replicas=3"})),
            "--min-replicas 4 is out of range; give 0 to 3, the number of workers");
  EXPECT_EQ(fault_of(dist_with("pytorch", {"--min-replicas=2", "--max-replicas=many"})),
            "--max-replicas 'many' is not a whole number");
  EXPECT_EQ(fault_of(dist_with("tf", {"--min-replicas=1"})), "unknown flag '--min-replicas'");
}

TEST(RunaiMaster, AFaultOfTheWorkersIsReportedOnce) {
  EXPECT_EQ(fault_of(dist_with("pytorch", {"-g=9999"})),
            "--gpu 9999 is out of range; give 0 to 1024");
  EXPECT_EQ(fault_of(dist_with("pytorch", {"--workers=-1"})).substr(0, 30),
            "--workers -1 is out of range; ");
}

}  // namespace

}  // namespace muster::dialects::runai
