// That the launchers of MPI find the hosts of a planned gang and start ranks on each: the real
// ones, in tasks of the engine. A rank here is a shell, which needs no MPI.
#include "engine/conformance.h"

namespace muster::engine {
namespace {

class MpiLaunchers : public Conformance {
 protected:
  /// Two workers with a slot each and a launcher with as many as are asked for.
  launch::GangPlan plan(std::vector<std::string> command, int leader_slots) {
    job::Job job{.id = gang_.job_id,
                 .spec = {.name = "dist",
                          .kind = job::Kind::kMpi,
                          .command = std::move(command),
                          .workers = 2,
                          .worker_command = {"sh", "-c", "echo beside; exec sleep " + marker_},
                          .leader_slots = leader_slots,
                          .folder = folder_.string(),
                          .sandbox = GetParam()},
                 .attempt = gang_.attempt};
    job.tasks = job::tasks_of(job.spec);
    for (job::Task& task : job.tasks) task.node = "n1";
    base::SystemRandom random;
    auto planned =
        launch::plan_gang(job, launch::make_seed(random),
                          {.user = user_name(), .generated_folder = [&](std::string_view task) {
                             return bench_->engine().generated_folder(gang_, task, GetParam());
                           }});
    EXPECT_TRUE(planned);
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
    places.push_back(std::to_string(rank.rank) + " " + rank.task);
  }
  std::sort(places.begin(), places.end());
  EXPECT_EQ(places, (Lines{"0 worker-0", "1 worker-1", "2 launcher", "3 launcher"}));
}

TEST_P(MpiLaunchers, OpenMpiWithTwoRanksLeavesTheLauncherAlone) {
  const launch::GangPlan gang =
      plan({"mpirun", "--allow-run-as-root", "-np", "2", "sh", "-c", "echo on $MUSTER_TASK"}, 2);

  EXPECT_EQ(run_gang(gang), (Lines{"on worker-0", "on worker-1"}));
}

TEST_P(MpiLaunchers, MpichReadsTheOtherHostfileAndGivesEachRankItsOwnTasksVariables) {
  const launch::GangPlan gang = plan(
      {"mpiexec.hydra", "-np", "4", "sh", "-c", "set $SSH_CONNECTION; echo $MUSTER_TASK at $3"}, 2);

  const std::string launcher = "launcher at " + gang.then[0].address;
  EXPECT_EQ(run_gang(gang), (Lines{launcher, launcher, "worker-0 at " + gang.first[0].address,
                                   "worker-1 at " + gang.first[1].address}));
}

INSTANTIATE_TEST_SUITE_P(Engines, MpiLaunchers,
                         testing::Values(Sandbox::kBubblewrap, Sandbox::kNone), engine_name);

}  // namespace
}  // namespace muster::engine
