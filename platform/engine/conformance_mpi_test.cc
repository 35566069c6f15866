// The real launchers of MPI, in tasks of the engine, find the hosts of a planned gang and start
// ranks on each. A rank here is a shell, which needs no MPI.
#include "engine/conformance.h"
#include "engine/rank_files.h"

namespace muster::engine {
namespace {

class MpiLaunchers : public Conformance {
 protected:
  /// Two workers with a slot each and a launcher with the given number of slots.
  launch::GangPlan plan(std::vector<std::string> command, int leader_slots) {
    job::Job job{.id = gang_.job_id,
                 .spec = {.name = "dist",
                          .kind = job::Kind::kMpi,
                          .command = std::move(command),
                          .workers = 2,
                          .worker_command = {"sh", "-c", "echo beside; exec sleep " + marker_},
                          .leader_slots = leader_slots,
                          .folder = scratch_.string(),
                          .sandbox = sandbox()},
                 .attempt = gang_.attempt};
    job.tasks = job::tasks_of(job.spec);
    for (job::Task& task : job.tasks) task.node = bench_->engine().nodes().front().name;
    base::SystemRandom random;
    launch::Site site{.user = user_name(), .generated_folder = [&](std::string_view task) {
                        return bench_->engine().generated_folder(gang_, task, sandbox());
                      }};
    GetParam().fill_site(site, job);
    auto planned = launch::plan_gang(job, launch::make_seed(random), site);
    EXPECT_TRUE(planned);
    for (auto* tasks : {&planned->first, &planned->then}) {
      for (TaskPlan& task : *tasks) task = GetParam().placed(task, scratch_);
    }
    return *std::move(planned);
  }

  /// Runs it to its end; the lines of the launcher, sorted.
  std::vector<std::string> run_gang(const launch::GangPlan& gang) {
    const auto workers = bench_->start(gang_, gang.first);
    EXPECT_TRUE(workers) << workers.error().to_string();
    for (const char* worker : {"worker-0", "worker-1"}) bench_->wait_for_answer(worker);
    EXPECT_TRUE(bench_->start(gang_, gang.then));
    const TaskEnded end = bench_->wait_for_end("launcher");
    EXPECT_EQ(end.status.shell_code(), 0) << log_of("launcher", job::LogStream::kError);
    for (const char* worker : {"worker-0", "worker-1"}) {
      // The task still runs. If its node has files of its own, the output is still on its way.
      bench_->wait_until([&] { return log_of(worker) == "beside\n"; });
      EXPECT_EQ(log_of(worker), "beside\n");
      bench_->engine().stop(gang_, {worker}, StopMode::kNow);
      bench_->wait_for_end(worker);
    }
    std::vector<std::string> lines = base::split(log_of("launcher"), '\n');
    std::sort(lines.begin(), lines.end());
    return lines;
  }
};

using Lines = std::vector<std::string>;

TEST_P(MpiLaunchers, OpenMpiFillsTheWorkersAndThenALauncherThatTakesRanks) {
  const launch::GangPlan gang =
      plan({"mpirun", "--allow-run-as-root", "-np", "4", "sh", "-c", "echo on $MUSTER_TASK"}, 2);

  EXPECT_EQ(run_gang(gang), (Lines{"on launcher", "on launcher", "on worker-0", "on worker-1"}));

  Lines places;
  for (const RankPlace& rank :
       bench_->engine().ranks(gang_, {"launcher", "worker-0", "worker-1"})) {
    if (rank.rank == kReached) continue;
    places.push_back(std::to_string(rank.rank) + " " + rank.task);
  }
  std::sort(places.begin(), places.end());
  EXPECT_EQ(places, (Lines{"0 worker-0", "1 worker-1", "2 launcher", "3 launcher"}));
}

TEST_P(MpiLaunchers, WorkersThatALauncherReachesSignInAsReached) {
  run_gang(plan({"mpirun", "--allow-run-as-root", "-np", "2", "true"}, 0));

  for (const char* worker : {"worker-0", "worker-1"}) {
    const auto ranks = bench_->engine().ranks(gang_, {worker});
    EXPECT_TRUE(std::any_of(ranks.begin(), ranks.end(), [](const RankPlace& place) {
      return place.rank == kReached;
    })) << worker;
  }
}

TEST_P(MpiLaunchers, OpenMpiWithTwoRanksLeavesTheLauncherAlone) {
  const launch::GangPlan gang =
      plan({"mpirun", "--allow-run-as-root", "-np", "2", "sh", "-c", "echo on $MUSTER_TASK"}, 2);

  EXPECT_EQ(run_gang(gang), (Lines{"on worker-0", "on worker-1"}));
}

INSTANTIATE_TEST_SUITE_P(Engines, MpiLaunchers, testing::ValuesIn(grounds()), ground_name);

/// Tests of engines whose tasks use this machine's files, which contain both launchers. An image
/// contains only one.
class MpichLauncher : public MpiLaunchers {};

TEST_P(MpichLauncher, ReadsTheOtherHostfileAndGivesEachRankItsOwnTasksVariables) {
  const launch::GangPlan gang = plan(
      {"mpiexec.hydra", "-np", "4", "sh", "-c", "set $SSH_CONNECTION; echo $MUSTER_TASK at $3"}, 2);

  const std::string launcher = "launcher at " + gang.then[0].address;
  EXPECT_EQ(run_gang(gang), (Lines{launcher, launcher, "worker-0 at " + gang.first[0].address,
                                   "worker-1 at " + gang.first[1].address}));
}

TEST_P(MpichLauncher, ItsRanksAreFoundWhereTheyAreThoughTheySignInNowhere) {
  const launch::GangPlan gang =
      plan({"mpiexec.hydra", "-np", "4", "sh", "-c",
            "until [ -s $MUSTER_GENERATED/ranks/$PMI_RANK ]; do sleep 0.02; done; echo here"},
           2);

  EXPECT_EQ(run_gang(gang), (Lines{"here", "here", "here", "here"}));

  Lines places;
  for (const RankPlace& rank :
       bench_->engine().ranks(gang_, {"launcher", "worker-0", "worker-1"})) {
    if (rank.rank == kReached) continue;
    places.push_back(std::to_string(rank.rank) + " of " + std::to_string(rank.world_size) + " " +
                     rank.task);
  }
  std::sort(places.begin(), places.end());
  EXPECT_EQ(places,
            (Lines{"0 of 4 worker-0", "1 of 4 worker-1", "2 of 4 launcher", "3 of 4 launcher"}));
  EXPECT_GT(bench_->rank_reports_of("worker-0"), 0);
}

// Some test programs have no engine for this suite.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MpichLauncher);
INSTANTIATE_TEST_SUITE_P(Engines, MpichLauncher,
                         testing::ValuesIn(grounds_where(&Ground::is_container, false)),
                         ground_name);

}  // namespace
}  // namespace muster::engine
