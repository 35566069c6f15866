#include "control/census.h"

#include <gtest/gtest.h>

#include "engine/rank_files.h"
#include "words/test_words.h"

namespace muster::control {
namespace {

using engine::RankPlace;
using job::Job;
using RankPlaces = std::vector<RankPlace>;

/// Two workers with two slots each, and the command of the launcher.
Job launcher_job(std::vector<std::string> command, std::string mpi = "Open MPI 4.1.4") {
  Job job{.spec = {.name = "dist",
                   .kind = job::Kind::kMpi,
                   .command = std::move(command),
                   .workers = 2,
                   .slots_per_worker = 2},
          .launch = job::LaunchFacts{.by = job::LaunchBy::kSsh, .why = {}, .mpi = std::move(mpi)}};
  job.tasks = job::tasks_of(job.spec);
  for (job::Task& task : job.tasks) task.node = "n1";
  return job;
}

const std::vector<std::string> kPlain{"mpirun", "-np", "4", "train"};
const std::vector<std::string> kScript{"sh", "-c", "prepare; mpirun -np 4 train"};

/// Ranks 0 to `count` - 1 of a world of `size`, in one task.
RankPlaces ranks_on(const std::string& task, int count, int size, int first = 0) {
  RankPlaces places;
  for (int i = 0; i < count; ++i) places.push_back({first + i, size, task});
  return places;
}

RankPlaces operator+(RankPlaces left, const RankPlaces& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

TEST(CensusAtStart, FailsAWorldWhoseRanksAllRunOnTheLauncher) {
  const CensusVerdict verdict = judge_at_start(launcher_job(kPlain), ranks_on("launcher", 4, 4));

  ASSERT_TRUE(verdict.fault);
  EXPECT_TRUE(verdict.fault->is_certain);
  EXPECT_EQ(verdict.fault->cause,
            "all 4 ranks run on the launcher and none on a worker: mpirun did not use the "
            "hostfile");
  EXPECT_EQ(verdict.fault->advice, "use mpirun --hostfile /generated/hostfile instead of --host");
  EXPECT_EQ(verdict.fault->evidence,
            (std::vector<std::string>{"launcher: ranks 0 to 3", "worker-0: no rank",
                                      "worker-1: no rank"}));
}

TEST(CensusAtStart, AdvisesInTheWordsOfTheMpiThatItIs) {
  const auto advice = [](const std::string& mpi) {
    return judge_at_start(launcher_job(kPlain, mpi), ranks_on("launcher", 4, 4)).fault->advice;
  };
  EXPECT_EQ(advice("MPICH 4.0.2"), "use -f /generated/hostfile instead of -hosts");
  EXPECT_EQ(advice("Intel MPI 2021.13"), "use -machinefile /generated/hostfile instead of -hosts");
}

TEST(CensusAtStart, FailsAWorkerThatHasMoreRanksThanSlotsWhileAnotherHasNone) {
  const CensusVerdict verdict = judge_at_start(launcher_job(kPlain), ranks_on("worker-0", 4, 4));

  ASSERT_TRUE(verdict.fault);
  EXPECT_EQ(verdict.fault->cause,
            "worker-0 runs 4 ranks and has 2 slots, while other tasks have free slots: mpirun did "
            "not use the hostfile");
}

TEST(CensusAtStart, FailsRanksThatEachFormTheirOwnWorld) {
  const CensusVerdict verdict =
      judge_at_start(launcher_job(kPlain), {{0, 1, "worker-0"}, {0, 1, "worker-1"}});

  ASSERT_TRUE(verdict.fault);
  EXPECT_EQ(verdict.fault->cause,
            "4 ranks each run in an MPI world of size 1: the program was built for a different MPI "
            "than the mpirun that started it (Open MPI 4.1.4)");
}

TEST(CensusAtStart, WaitsUntilAllRanksOfAWorldAreThere) {
  const CensusVerdict verdict = judge_at_start(launcher_job(kPlain), ranks_on("launcher", 3, 4));

  EXPECT_FALSE(verdict.fault);
  EXPECT_FALSE(verdict.is_final);
}

TEST(CensusAtStart, IsOverOnceTheOneWorldThatThereWillBeIsAsItShould) {
  const CensusVerdict verdict = judge_at_start(
      launcher_job(kPlain), ranks_on("worker-0", 2, 4) + ranks_on("worker-1", 2, 4, 2));

  EXPECT_FALSE(verdict.fault);
  EXPECT_TRUE(verdict.is_final);
}

TEST(CensusAtStart, OnlyWarnsAboutAScript) {
  const CensusVerdict verdict = judge_at_start(launcher_job(kScript), ranks_on("launcher", 4, 4));

  ASSERT_TRUE(verdict.fault);
  EXPECT_FALSE(verdict.fault->is_certain);
  EXPECT_EQ(verdict.fault->cause, "all 4 ranks run on the launcher and none on a worker");
}

TEST(CensusAtStart, OnlyWarnsAboutAnMpirunWithItsOwnHosts) {
  const CensusVerdict verdict =
      judge_at_start(launcher_job({"mpirun", "-np", "4", "--host", "localhost:4", "train"}),
                     ranks_on("launcher", 4, 4));

  EXPECT_FALSE(verdict.fault->is_certain);
}

TEST(CensusAtStart, LeavesHealthyJobsAlone) {
  const auto with_slots_of_its_own = [] {
    Job job = launcher_job(kPlain);
    job.spec.leader_slots = 4;
    return job;
  };
  const auto elastic = [] {
    Job job = launcher_job({"mpirun", "train"});
    job.tasks.back().node.clear();
    return job;
  };
  const struct {
    const char* what;
    Job job;
    RankPlaces ranks;
  } cases[] = {
      {"fewer ranks than there are slots", launcher_job({"mpirun", "-np", "2", "train"}),
       ranks_on("worker-0", 2, 2)},
      {"one rank", launcher_job({"mpirun", "-np", "1", "train"}), ranks_on("worker-1", 1, 1)},
      {"a program that is no MPI program, of which every copy signs in",
       launcher_job({"mpirun", "hostname"}),
       ranks_on("worker-0", 2, 4) + ranks_on("worker-1", 2, 4, 2)},
      {"more ranks than slots, as was asked for", launcher_job({"mpiexec", "-n", "8", "train"}),
       ranks_on("worker-0", 4, 8) + ranks_on("worker-1", 4, 8, 4)},
      {"all on one worker, as was asked for",
       launcher_job({"mpirun", "-np", "4", "--host", "dist-worker-0:4", "train"}),
       ranks_on("worker-0", 4, 4)},
      {"oversubscribed, as was asked for",
       launcher_job({"mpirun", "-np", "3", "--oversubscribe", "-N", "3", "train"}),
       ranks_on("worker-0", 3, 3)},
      {"a script that prepares something on the launcher", launcher_job(kScript),
       ranks_on("launcher", 1, 1)},
      {"a script that has prepared something there, and trains on workers", launcher_job(kScript),
       ranks_on("launcher", 1, 1) + ranks_on("worker-0", 2, 4) + ranks_on("worker-1", 2, 4, 2)},
      {"a script whose second program has fewer ranks than its first", launcher_job(kScript),
       ranks_on("worker-0", 1, 1) + ranks_on("worker-0", 1, 4, 1) + ranks_on("worker-1", 2, 4, 2)},
      {"a script that runs one rank on each worker, one after the other", launcher_job(kScript),
       ranks_on("worker-0", 1, 1) + ranks_on("worker-1", 1, 1)},
      {"a script that starts the same twice, elsewhere", launcher_job(kScript),
       ranks_on("launcher", 2, 2) + ranks_on("worker-0", 2, 2)},
      {"a driver that starts more than itself", launcher_job({"mpirun", "-np", "1", "driver"}),
       ranks_on("worker-0", 4, 4)},
      {"drivers whose children have taken the place of one of them",
       launcher_job({"mpirun", "-np", "2", "driver"}),
       ranks_on("worker-0", 1, 1) + ranks_on("worker-1", 1, 1) + ranks_on("worker-1", 1, 2, 1)},
      {"a launcher that takes ranks, and takes all that there are", with_slots_of_its_own(),
       ranks_on("launcher", 4, 4)},
      {"an elastic gang that has one worker", elastic(), ranks_on("worker-0", 2, 2)},
      {"files that are just being written", launcher_job(kPlain), ranks_on("launcher", 4, 0)},
      {"a job of another kind", Job{.spec = {.kind = job::Kind::kTorch}},
       ranks_on("worker-0", 4, 4)},
      {"nobody yet", launcher_job(kPlain), {}},
  };
  for (const auto& healthy : cases) {
    const CensusVerdict verdict = judge_at_start(healthy.job, healthy.ranks);
    EXPECT_FALSE(verdict.fault) << healthy.what << ": " << verdict.fault->cause;
  }
}

TEST(CensusAtStart, ALauncherThatTakesRanksDoesNotTakeThemAll) {
  Job job = launcher_job(kPlain);
  job.spec.leader_slots = 1;

  EXPECT_TRUE(judge_at_start(job, ranks_on("launcher", 4, 4)).fault);
}

TEST(CensusAtStart, NamesTheTaskOfARankThatHangsInMpiFinalize) {
  const RankPlaces whole = ranks_on("worker-0", 2, 4) + ranks_on("worker-1", 2, 4, 2);
  const Job job = launcher_job(kPlain, "MPICH 4.0.2");

  const auto fault = hanging_rank(job, whole + RankPlaces{{engine::kHangs, 4, "worker-1"}});

  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->cause,
            "MPICH hangs in MPI_Finalize: a rank on worker-1 waits for the other ranks, which wait "
            "for its answer");
  EXPECT_TRUE(fault->is_certain);
  EXPECT_FALSE(hanging_rank(job, whole));
}

TEST(CensusAtEnd, AgreesWhenEveryRankRanOnAWorker) {
  EXPECT_FALSE(judge_at_end(launcher_job(kPlain), {{0, 2, "worker-0"}, {1, 2, "worker-1"}}));
}

TEST(CensusAtEnd, CatchesRanksThatAllRanOnTheLauncherWhateverStartedThem) {
  for (const auto& command : {kPlain, kScript}) {
    const auto fault = judge_at_end(launcher_job(command), ranks_on("launcher", 2, 2));
    ASSERT_TRUE(fault);
    EXPECT_NE(
        words::sentence(job::FailureCause(fault->cause)).find("all ranks ran on the launcher"),
        std::string::npos);
  }
}

TEST(CensusAtEnd, CatchesAWorkerThatWasCrowdedByAProgramTooShortToBeSeenRunning) {
  const auto fault =
      judge_at_end(launcher_job(kPlain, "Intel MPI 2021.13"), ranks_on("worker-0", 4, 4));

  ASSERT_TRUE(fault);
  EXPECT_EQ(words::sentence(job::FailureCause(fault->cause))
                .find("worker-0 runs 4 ranks and has 2 slots"),
            0U)
      << fault->cause;
  EXPECT_FALSE(judge_at_end(launcher_job(kScript), ranks_on("worker-0", 4, 4)));
}

TEST(CensusAtEnd, FailsAnIncompleteWorldIfEveryRankRegisters) {
  const RankPlaces half{{0, 4, "worker-0"}, {1, 4, "worker-1"}};

  EXPECT_EQ(judge_at_end(launcher_job(kPlain), half)->cause, "only 2 of 4 ranks started");
}

TEST(CensusAtEnd, IgnoresRanksThatMayHaveEndedBeforeTheyWereSeen) {
  for (const char* mpi : {"MPICH 4.0.2", "Intel MPI 2021.13", ""}) {
    const Job job = launcher_job(kPlain, mpi);
    EXPECT_FALSE(judge_at_end(job, {{2, 4, "worker-0"}})) << mpi;
    EXPECT_FALSE(judge_at_end(job, {{0, 4, "launcher"}})) << mpi;
    EXPECT_TRUE(judge_at_end(job, ranks_on("launcher", 4, 4))) << mpi;
  }
}

TEST(CensusAtEnd, AcceptsSeveralProgramsOfOneJob) {
  // First mpirun -np 2, then mpirun -np 1: the file of rank 0 now has a world of 1.
  EXPECT_FALSE(judge_at_end(launcher_job(kScript),
                            {{0, 1, "worker-0"}, {0, 2, "worker-1"}, {1, 2, "worker-1"}}));
}

TEST(CensusAtEnd, AWorldThatChangesWithItsWorkersIsNoFault) {
  const RankPlaces worlds = ranks_on("worker-0", 2, 4) + ranks_on("worker-1", 1, 3, 2);
  const RankPlaces crowded = ranks_on("worker-0", 4, 4);
  Job job = launcher_job(kPlain);
  EXPECT_TRUE(judge_at_end(job, worlds));
  EXPECT_TRUE(judge_at_start(job, crowded).fault);

  job.spec.scheduling = {.min_workers = 1, .resize = job::Resize::kLive};

  EXPECT_FALSE(judge_at_end(job, worlds));
  EXPECT_FALSE(judge_at_start(job, crowded).fault);
  EXPECT_TRUE(judge_at_end(job, ranks_on("launcher", 4, 4))) << "its workers took no part";
}

TEST(CensusAtEnd, CatchesACommandThatRanNothingInAWorker) {
  const auto fault = judge_at_end(launcher_job({"hostname"}), {});

  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->cause,
            "the command ran only on the launcher: it started no process on a worker");
  EXPECT_EQ(fault->advice,
            "start the program by mpirun (mpirun -np 4 PROGRAM), or submit it as a 'single' job; "
            "--allow-launcher-only (allow_launcher_only: true) lets such a job succeed");
}

TEST(CensusAtEnd, AcceptsAWorkerThatWasReachedAndWasSeenToRunNoRank) {
  for (const char* mpi : {"Open MPI 4.1.4", "MPICH 4.0.2", ""}) {
    const RankPlaces reached{{engine::kReached, 1, "worker-1"}};
    EXPECT_FALSE(judge_at_end(launcher_job({"horovodrun", "train"}, mpi), reached)) << mpi;
    EXPECT_TRUE(judge_at_end(launcher_job(kPlain, mpi), reached + ranks_on("launcher", 4, 4)))
        << mpi;
    EXPECT_FALSE(judge_at_end(launcher_job(kPlain, mpi),
                              reached + ranks_on("worker-0", 2, 4) + ranks_on("worker-1", 2, 4, 2)))
        << mpi;
  }
}

TEST(CensusAtEnd, AcceptsACommandThatIsMeantToRunOnlyOnTheLauncher) {
  Job allowed = launcher_job({"hostname"});
  allowed.spec.allow_launcher_only = true;
  Job interactive = launcher_job({"sleep", "infinity"});
  interactive.spec.scheduling.purpose = job::Purpose::kBuild;
  Job by_slurm = launcher_job({"train"});
  by_slurm.launch->by = job::LaunchBy::kSrun;
  Job with_servers = launcher_job({"client"});
  with_servers.spec.worker_command = {"serve"};
  Job alone = launcher_job({"hostname"});
  alone.tasks.resize(1);
  for (const Job& job : {allowed, interactive, by_slurm, with_servers, alone}) {
    EXPECT_FALSE(judge_at_end(job, {})) << job.spec.command.front();
  }
  EXPECT_FALSE(judge_at_end(allowed, ranks_on("launcher", 4, 4)));
  EXPECT_FALSE(judge_at_start(allowed, ranks_on("launcher", 4, 4)).fault);
}

TEST(CensusAtEnd, ExpectsRanksInWorkersThatOnlySleep) {
  Job job = launcher_job({"client"});
  for (const char* const sleeps :
       {"sleep infinity", "sleep infinity & wait", "sleep infinity;", "sleep $TIME",
        "sleep 1\nwait\n", "sleep 9 & wait $!", "sleep 5 && sleep 5 || sleep 5"}) {
    job.spec.worker_command = {"sh", "-c", sleeps};
    EXPECT_TRUE(judge_at_end(job, {})) << sleeps;
  }
  for (const char* const serves :
       {"sleep 5; exec ./serve", "sleep 5 && ./serve", "sleep 5 & ./serve", "sleep 5\n./serve",
        "sleep $(./serve)", "sleep `./serve`", "sleep 5; sleepless", "sleepless"}) {
    job.spec.worker_command = {"sh", "-c", serves};
    EXPECT_FALSE(judge_at_end(job, {})) << serves;
  }
}

TEST(CensusAtEnd, IgnoresOtherKinds) {
  EXPECT_FALSE(judge_at_end({.spec = {.kind = job::Kind::kSingle}}, {{0, 1, "main"}}));
  EXPECT_FALSE(judge_at_end({.spec = {.kind = job::Kind::kSingle}}, {}));
}

}  // namespace
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

TEST(SoleMpirun, IsNeitherAScriptNorAnotherProgramNorTheProgramOfAnImage) {
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

TEST(SoleMpirun, HasTheNumberOfRequestedRanksIfThatIsCertain) {
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

TEST(SoleMpirun, PlacesItsRanksItselfWithOptionsForThat) {
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

TEST(SoleMpirun, LeavesThePlacementToTheJobsHostfileWithoutSuchOptions) {
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
