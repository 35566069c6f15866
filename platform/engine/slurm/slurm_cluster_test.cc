// Behaviour that only Slurm has, on a real cluster (conformance_slurm.h): Slurm loses its controller
// or a node, or requeues or suspends a job; a user cancels a job of Muster.
#include "engine/conformance_slurm.h"
#include "engine/engine.h"
#include "words/sentence.h"
#include "words/test_words.h"

namespace muster::engine {
namespace {

using Why = AllocationRevoked::Why;

class OnCluster : public Conformance {
 protected:
  /// A task that runs until it is stopped.
  void start_task() {
    ASSERT_TRUE(bench_->start(
        gang_, {script("echo up; until [ -e \"$SCRATCH/go\" ]; do sleep 0.01; done; exit 7")}));
    wait_for_output("main");
  }
  void let_it_end() { ASSERT_TRUE(base::write_file(scratch_ / "go", "")); }

  std::string slurm_job(const GangId& gang) {
    const auto* const given = bench_->last_allocation_news<AllocationGranted>(gang);
    EXPECT_NE(given, nullptr);
    return given == nullptr ? "" : std::to_string(given->slurm_job);
  }
  std::string node_of_task() {
    const auto* const given = bench_->last_allocation_news<AllocationGranted>(gang_);
    return given == nullptr ? "" : given->places.front().node;
  }

  template <class News>
  const News* wait_for(const GangId& gang, const std::function<bool(const News&)>& is_it = {}) {
    bench_->wait_until([&] {
      const News* const last = bench_->last_allocation_news<News>(gang);
      return last != nullptr && (!is_it || is_it(*last));
    });
    const News* const last = bench_->last_allocation_news<News>(gang);
    const bool is_there = last != nullptr && (!is_it || is_it(*last));
    return is_there ? last : nullptr;
  }
  bool waits_with(const GangId& gang, const std::string& words) {
    return wait_for<AllocationPending>(gang, [&](const AllocationPending& waits) {
             return words::sentence(waits.reason).find(words) != std::string::npos;
           }) != nullptr;
  }
  void ask(const GangId& gang, const std::function<void(AllocationRequest&)>& change = {}) {
    AllocationRequest request{
        .job = gang.job_id, .project = "default", .tasks = {{.task = "main"}}};
    if (change) change(request);
    bench_->engine().request_allocation(gang, std::move(request));
  }

  const GangId next_{kJob, 2};
  const GangId other_{"job2", 1};
};

TEST_P(OnCluster, TasksContinueAndRequestsWaitWithoutAController) {
  start_task();
  control_cluster("kill_controller");
  const auto* const state_change = wait_for<AllocationStateChange>(gang_);
  ASSERT_NE(state_change, nullptr);
  ASSERT_TRUE(state_change->state.has_value());
  EXPECT_NE(words::sentence(job::Fact(*state_change->state))
                .find("Slurm's controller has not answered since"),
            std::string::npos);

  ask(other_);
  EXPECT_TRUE(waits_with(other_, "has not answered since"));
  let_it_end();
  EXPECT_EQ(bench_->wait_for_end("main").status.code, 7);

  control_cluster("start_controller");
  EXPECT_NE(wait_for<AllocationGranted>(other_), nullptr);
  EXPECT_EQ(bench_->last_allocation_news<AllocationRevoked>(gang_), nullptr);
  bench_->engine().release_allocation(other_);
}

TEST_P(OnCluster, ADeadNodeAndItsTaskAreNamed) {
  start_task();
  const std::string node = node_of_task();
  control_cluster("kill_node " + node);

  const auto* const taken = wait_for<AllocationRevoked>(gang_);
  control_cluster("start_node " + node);

  ASSERT_NE(taken, nullptr);
  EXPECT_EQ(taken->why, Why::kNodeLost) << words::sentence(taken->end);
  EXPECT_EQ(taken->node, node);
  // Its processes are killed one after the other, so the last may have reported the end of the
  // first.
  EXPECT_FALSE(bench_->wait_for_end("main").status.succeeded());
}

TEST_P(OnCluster, ACancellationInSlurmIsReported) {
  start_task();
  control_cluster("cancel " + slurm_job(gang_));

  const auto* const taken = wait_for<AllocationRevoked>(gang_);

  ASSERT_NE(taken, nullptr);
  EXPECT_EQ(taken->why, Why::kCancelled) << words::sentence(taken->end);
  EXPECT_TRUE(bench_->wait_for_end("main").status.lost);
}

TEST_P(OnCluster, ARequeuedJobKeepsItsIdForTheNextAttempt) {
  start_task();
  const std::string job = slurm_job(gang_);
  control_cluster("requeue " + job);
  const auto* const taken = wait_for<AllocationRevoked>(gang_);
  ASSERT_NE(taken, nullptr);
  EXPECT_EQ(taken->why, Why::kEvicted) << words::sentence(taken->end);
  EXPECT_TRUE(bench_->wait_for_end("main").status.lost);

  AllocationRequest request{.job = kJob, .project = "default"};
  for (const std::string& task : GetParam().tasks_to_seat({script("true")})) {
    request.tasks.push_back({.task = task});
  }
  bench_->engine().request_allocation(next_, request);
  bench_->engine().release_allocation(gang_);

  EXPECT_TRUE(waits_with(next_, "waits in Slurm as job " + job));
}

TEST_P(OnCluster, SuspensionIsReportedUntilItEnds) {
  start_task();
  const std::string job = slurm_job(gang_);
  control_cluster("suspend " + job);
  EXPECT_NE(wait_for<AllocationStateChange>(gang_,
                                            [](const AllocationStateChange& state_change) {
                                              return state_change.state.has_value();
                                            }),
            nullptr);

  control_cluster("resume " + job);

  EXPECT_NE(
      wait_for<AllocationStateChange>(
          gang_, [](const AllocationStateChange& state_change) { return !state_change.state; }),
      nullptr);
  let_it_end();
  EXPECT_EQ(bench_->wait_for_end("main").status.code, 7);
}

TEST_P(OnCluster, ADrainedNodeIsClosedAndGetsNoTask) {
  control_cluster("drain n1 its fan is loud");
  bench_->wait_until([&] {
    for (const Node& node : bench_->engine().nodes()) {
      if (node.name == "n1") return is_closed(node);
    }
    return false;
  });
  ask(gang_);
  const auto* const given = wait_for<AllocationGranted>(gang_);
  control_cluster("undrain n1");

  ASSERT_NE(given, nullptr);
  EXPECT_NE(given->places[0].node, "n1");
}

TEST_P(OnCluster, TasksHaveTheGpusThatSlurmAllocated) {
  ask(gang_, [](AllocationRequest& request) { request.tasks[0].resources.gpus = 2; });

  const auto* const given = wait_for<AllocationGranted>(gang_);

  ASSERT_NE(given, nullptr);
  EXPECT_EQ(given->places[0].devices.size(), 2U);
}

TEST_P(OnCluster, ATooLargeRequestWaitsWithSlurmsReason) {
  const auto whole_node = [this](AllocationRequest& request) {
    request.tasks[0].resources.cpu_milli = bench_->engine().nodes().front().cpu_milli;
  };
  const size_t nodes = bench_->engine().nodes().size();
  std::vector<GangId> first;
  for (size_t i = 0; i < nodes; ++i) {
    first.push_back({"whole" + std::to_string(i), 1});
    ask(first.back(), whole_node);
  }
  for (const GangId& gang : first) ASSERT_NE(wait_for<AllocationGranted>(gang), nullptr);
  ask(other_, whole_node);
  const auto* const waits = wait_for<AllocationPending>(
      other_, [](const AllocationPending& each) { return !each.constraint.empty(); });
  ASSERT_NE(waits, nullptr);
  EXPECT_NE(words::sentence(waits->reason).find("waits in Slurm as job "), std::string::npos)
      << waits->reason;
  EXPECT_NE(words::sentence(waits->reason).find("(" + waits->constraint + ")"), std::string::npos)
      << waits->reason;

  bench_->engine().release_allocation(first[0]);

  EXPECT_NE(wait_for<AllocationGranted>(other_), nullptr);
}

TEST_P(OnCluster, ATaskWithoutClaimsSharesANode) {
  ask(gang_, [](AllocationRequest& request) {
    request.tasks[0].task = "launcher";
    request.tasks.push_back({.task = "worker-0", .resources = {.cpu_milli = 1'000}});
  });

  const auto* const given = wait_for<AllocationGranted>(gang_);

  ASSERT_NE(given, nullptr);
  EXPECT_EQ(given->places[0].node, given->places[1].node);
}

INSTANTIATE_TEST_SUITE_P(Slurm, OnCluster, testing::ValuesIn(grounds()), ground_name);

}  // namespace
}  // namespace muster::engine
