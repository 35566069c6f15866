// Jobs on an engine that requests allocations from a cluster: they request, wait, get an allocation
// and lose it again, as the cluster decides.
#include <gtest/gtest.h>

#include <algorithm>

#include "control/test_cluster.h"
#include "words/test_words.h"

namespace muster::control {
namespace {

using base::ErrorCode;
using engine::AllocationPending;
using engine::AllocationStateChange;
using job::JobSpec;
using job::Phase;

// --- waiting

TEST_F(Allocations, AJobRequestsAnAllocationEvenIfAllNodesAreFree) {
  submit(mpi("dist", "default", 2));

  EXPECT_EQ(job("dist").phase, Phase::kQueued);
  EXPECT_EQ(job("dist").reason, "asks Slurm for an allocation");
  ASSERT_TRUE(has_asked("dist"));
  EXPECT_EQ(request("dist").job, "dist");
  EXPECT_EQ(request("dist").tasks.size(), 3U);
  EXPECT_TRUE(engine_.running.empty());
}

TEST_F(Allocations, NeitherTheNodesNorTheQuotaRefuseAJob) {
  job::Project poor = project_of("poor", 0);
  poor.quota.limit.gpu_milli = 0;
  add(poor);
  JobSpec wide = single("wide", "poor", 64);
  wide.scheduling.preemptible = false;

  submit(wide);
  give("wide");

  EXPECT_EQ(job("wide").phase, Phase::kRunning);
}

TEST_F(Allocations, AJobThatTheClusterCanNeverPlaceIsRefusedAtItsSubmission) {
  engine_.allocation_refusal = {.code = ErrorCode::kRefused, .what = "Slurm shares no GPUs"};
  const auto refused = controller_->submit(single("part", "default", 1), "");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what, "Slurm shares no GPUs");

  engine_.allocation_refusal.reset();
  JobSpec near = single("near", "default", 1);
  near.scheduling.required_topology = "rack";
  const auto too_near = controller_->submit(near, "");
  ASSERT_FALSE(too_near);
  EXPECT_EQ(too_near.error().code, ErrorCode::kRefused);
}

TEST_F(Allocations, TheClustersReasonForAWaitIsShown) {
  submit(single("one", "default", 1));
  const base::Time noon{std::chrono::hours(12)};
  report(next("one"),
         AllocationPending{.reason = {job::Remark{"waits in Slurm as job 17: Resources"},
                                      {job::Remark{"nodes that it could have are busy"}}},
                           .may_start = noon,
                           .constraint = "Resources"});

  const auto why = controller_->explain("one");
  ASSERT_TRUE(why);
  EXPECT_EQ(why->reason, "waits in Slurm as job 17: Resources");
  EXPECT_EQ(words::details(why->reason),
            std::vector<std::string>{"nodes that it could have are busy"});
  EXPECT_EQ(why->may_start, noon);
  EXPECT_EQ(why->constraint, "Resources");
  EXPECT_EQ(why->position, 0);
}

TEST_F(Allocations, AnotherEstimateIsNoEventAndAnotherReasonIs) {
  submit(single("one", "default", 1));
  const auto waits = [](const std::string& why, int hour) {
    return AllocationPending{
        .reason = job::SlurmWaits{.stage = job::SlurmWaits::Stage::kPending,
                                  .slurm_job = 17,
                                  .reason = why,
                                  .expected = base::Time{std::chrono::hours(hour)}},
        .may_start = base::Time{std::chrono::hours(hour)},
        .constraint = why};
  };
  report(next("one"), waits("Resources", 12));
  report(next("one"), waits("Resources", 13));
  EXPECT_EQ(job("one").may_start, base::Time{std::chrono::hours(13)});
  EXPECT_EQ(count_events("one", "Resources"), 1U);

  report(next("one"), waits("QOSMaxGRESPerUser", 13));
  EXPECT_EQ(count_events("one", "QOSMaxGRESPerUser"), 1U);
  AllocationPending without_estimate = waits("QOSMaxGRESPerUser", 13);
  std::get<job::SlurmWaits>(without_estimate.reason.what).expected.reset();
  report(next("one"), without_estimate);
  EXPECT_EQ(job("one").reason, without_estimate.reason);
  EXPECT_EQ(count_events("one", "QOSMaxGRESPerUser"), 1U);
  report(next("one"), waits("QOSMaxGRESPerUser", 13));

  come_back();
  report(next("one"), waits("QOSMaxGRESPerUser", 14));
  EXPECT_EQ(count_events("one", "QOSMaxGRESPerUser"), 1U);
}

TEST_F(Allocations, AHeldJobAsksOnceItIsResumed) {
  JobSpec held = single("held", "default", 1);
  held.held = true;
  submit(held);
  EXPECT_FALSE(has_asked("held"));

  ASSERT_TRUE(controller_->resume("held"));
  settle();

  EXPECT_TRUE(has_asked("held"));
}

TEST_F(Allocations, ASuspendedJobGivesBackItsPlaceAndAsksAgainWhenItIsResumed) {
  submit(single("one", "default", 1));
  const engine::GangId first = next("one");

  ASSERT_TRUE(controller_->suspend("one"));
  settle();
  EXPECT_TRUE(engine_.requests.empty());
  EXPECT_TRUE(was_given_back(first));
  EXPECT_EQ(job("one").may_start, std::nullopt);

  ASSERT_TRUE(controller_->resume("one"));
  settle();
  EXPECT_TRUE(engine_.requests.contains(first));
}

TEST_F(Allocations, AJobThatIsStoppedWhileItWaitsCancelsItsRequest) {
  submit(single("one", "default", 1));
  ASSERT_TRUE(controller_->stop("one", false));
  settle();

  EXPECT_EQ(job("one").phase, Phase::kStopped);
  EXPECT_TRUE(engine_.requests.empty());
}

TEST_F(Allocations, NothingIsAskedForBeforeItIsOnDisk) {
  submit(single("one", "default", 1));
  ASSERT_TRUE(controller_->suspend("one"));
  settle();
  ASSERT_TRUE(engine_.requests.empty());

  store_.full = true;
  EXPECT_FALSE(controller_->resume("one"));
  settle();
  EXPECT_TRUE(engine_.requests.empty());

  store_.full = false;
  ASSERT_TRUE(controller_->set_labels("one", {{"any", "change"}}));
  settle();
  EXPECT_TRUE(has_asked("one"));
}

TEST_F(Allocations, AJobThatWasSuspendedAndResumedWhileTheStoreFailedStillRequestsAnAllocation) {
  submit(single("one", "default", 1));
  store_.full = true;
  for (int times = 0; times < 2; ++times) {
    EXPECT_FALSE(controller_->suspend("one"));
    EXPECT_FALSE(controller_->resume("one"));
  }
  store_.full = false;
  ASSERT_TRUE(controller_->set_labels("one", {{"any", "change"}}));
  settle();

  EXPECT_TRUE(has_asked("one"));
}

TEST_F(Allocations, WaitingJobsAreListedByTheirEstimatedStart) {
  for (const std::string name : {"first", "second", "third", "held"}) {
    JobSpec spec = single(name, "default", 1);
    spec.held = name == "held";
    submit(spec);
  }
  report(next("third"), AllocationPending{.reason = job::Remark{"waits"},
                                          .may_start = base::Time{std::chrono::hours(1)}});
  ASSERT_TRUE(controller_->suspend("first"));
  submit(single("fourth", "default", 1));

  std::vector<std::string> names;
  for (const job::Job* one : controller_->queue()) names.push_back(one->spec.name);

  EXPECT_EQ(names, (std::vector<std::string>{"third", "second", "fourth", "first", "held"}));
}

TEST_F(Allocations, AForecastContainsTheRequest) {
  const auto forecast = controller_->forecast(mpi("dist", "default", 2));

  ASSERT_TRUE(forecast);
  EXPECT_FALSE(forecast->starts_now);
  EXPECT_EQ(forecast->reason,
            "Slurm decides when it starts; Muster would request an allocation for 3 tasks");
  EXPECT_EQ(words::details(forecast->reason),
            std::vector<std::string>{"launcher, 2 workers (1 GPU each)"});
  EXPECT_EQ(forecast->before.requested.gpu_milli, 0);
  EXPECT_EQ(forecast->after.requested.gpu_milli, 2000);
  EXPECT_EQ(forecast->after.waiting, 1);
  EXPECT_TRUE(engine_.calls.empty());
}

TEST_F(Allocations, ACordonedNodeIsNotAskedForAnyMore) {
  ASSERT_TRUE(controller_->nodes().cordon("n1"));
  submit(single("one", "default", 1));
  EXPECT_EQ(request("one").avoided_nodes, std::vector<std::string>{"n1"});
}

TEST_F(Allocations, ANodeThatWasRemovedWhileItWasCordonedIsForgotten) {
  const std::vector<engine::Node> all = engine_.offered;
  ASSERT_TRUE(controller_->nodes().cordon(all.front().name));
  engine_.set_nodes({all.begin() + 1, all.end()});
  settle();

  submit(single("one", "default", 1));

  EXPECT_TRUE(request("one").avoided_nodes.empty());
  const auto lifted = controller_->nodes().uncordon(all.front().name);
  ASSERT_TRUE(lifted) << lifted.error().what;
  EXPECT_EQ(lifted->state, "gone");
  EXPECT_FALSE(controller_->nodes().uncordon(all.front().name));
}

// --- allocations

TEST_F(Allocations, AJobRunsInItsGrantedAllocation) {
  submit(mpi("dist", "default", 2));
  give("dist");

  EXPECT_EQ(job("dist").phase, Phase::kRunning);
  EXPECT_EQ(job("dist").attempt, 1);
  EXPECT_TRUE(noted("dist", "placed on n1, n2 (Slurm job 17), attempt 1"));
  EXPECT_EQ(job("dist").tasks[1].node, "n2");
  EXPECT_EQ(job("dist").tasks[1].devices, std::vector<int>{0});
  EXPECT_EQ(job("dist").tasks[1].gpu_share_milli, 1000);
  EXPECT_FALSE(was_given_back(gang("dist")));
}

// Together the jobs request more bytes than a 64-bit number can hold.
TEST_F(Allocations, AProjectWithAbsurdRequestsShowsNoLimit) {
  add(project_of("team-a", 1));
  for (int i = 0; i < 9; ++i) {
    job::JobSpec spec = mpi("huge-" + std::to_string(i), "team-a", 1000);
    spec.resources.memory_bytes = int64_t{1} << 50;
    submit(spec);
  }

  const auto project = controller_->projects().status("team-a");

  ASSERT_TRUE(project);
  EXPECT_EQ(project->waiting, 9);
  EXPECT_EQ(project->requested.memory_bytes, schedule::kUnlimited);
}

TEST_F(Allocations, NodesAndProjectsShowRunningAndWaitingJobs) {
  add(project_of("team-a", 1));
  submit(single("runs", "team-a", 1));
  submit(mpi("waits", "team-a", 3));
  give("runs");

  const auto node = controller_->nodes().find("n1");
  ASSERT_TRUE(node);
  EXPECT_EQ(node->jobs, std::vector<std::string>{"runs"});
  EXPECT_EQ(node->devices[0].free_milli, 0);
  EXPECT_EQ(node->devices[1].free_milli, 1000);
  const auto project = controller_->projects().status("team-a");
  ASSERT_TRUE(project);
  EXPECT_EQ(project->allocated.gpu_milli, 1000);
  EXPECT_EQ(project->requested.gpu_milli, 4000);
  EXPECT_EQ(project->running, 1);
  EXPECT_EQ(project->waiting, 1);

  end("runs");
  EXPECT_EQ(controller_->nodes().find("n1")->devices[0].free_milli, 1000);
  EXPECT_EQ(controller_->projects().status("team-a")->allocated.gpu_milli, 0);
}

TEST_F(Allocations, ANodeThatIsReportedLateIsBookedByItsRunningTasks) {
  engine_.set_nodes({});
  submit(single("one", "default", 1));
  give("one");
  ASSERT_EQ(job("one").phase, Phase::kRunning);

  engine_.set_nodes({engine::fake_node("n1", 2)});
  settle();

  EXPECT_EQ(controller_->nodes().find("n1")->devices[0].free_milli, 0);
  EXPECT_EQ(controller_->nodes().find("n1")->jobs, std::vector<std::string>{"one"});
}

TEST_F(Allocations, ANodeThatIsNoLongerListedEndsNoTask) {
  submit(single("one", "default", 1));
  give("one");
  engine_.set_nodes({engine::fake_node("n2", 2)});
  settle();
  EXPECT_EQ(job("one").phase, Phase::kRunning);

  end("one");
  EXPECT_EQ(job("one").phase, Phase::kSucceeded);
}

TEST_F(Allocations, EachEndOfAnAttemptReleasesItsAllocation) {
  submit(single("ends", "default", 1));
  submit(single("fails", "default", 1));
  submit(single("stops", "default", 1));
  submit(single("rests", "default", 1));
  for (const char* const name : {"ends", "fails", "stops", "rests"}) give(name);
  end("ends");
  end("fails", {.code = 3});
  ASSERT_TRUE(controller_->stop("stops", true));
  ASSERT_TRUE(controller_->suspend("rests"));
  settle();

  for (const char* const name : {"ends", "fails", "stops", "rests"}) {
    EXPECT_TRUE(was_given_back(gang(name))) << name;
    EXPECT_FALSE(has_asked(name)) << name;
  }
  EXPECT_EQ(job("rests").phase, Phase::kQueued);

  ASSERT_TRUE(controller_->resume("rests"));
  settle();
  EXPECT_TRUE(engine_.requests.contains({job("rests").id, 2}));
}

TEST_F(Allocations, ARetryRequestsItsOwnAllocation) {
  submit(with_retries(single("one", "default", 1), 1));
  give("one");
  end("one", {.code = 3});

  EXPECT_EQ(job("one").phase, Phase::kQueued);
  EXPECT_TRUE(was_given_back({job("one").id, 1}));
  EXPECT_TRUE(engine_.requests.contains({job("one").id, 2}));
}

TEST_F(Allocations, TheClustersNoteOnARunningJobIsShown) {
  submit(single("one", "default", 1));
  give("one");
  report(gang("one"), AllocationStateChange{job::SlurmState{.slurm_job = 17}});
  EXPECT_EQ(job("one").reason, "runs; Slurm has suspended it (job 17)");
  EXPECT_EQ(count_events("one", "Slurm has suspended it"), 1U);

  report(gang("one"), AllocationStateChange{job::SlurmState{.slurm_job = 17}});
  EXPECT_EQ(count_events("one", "Slurm has suspended it"), 1U);

  report(gang("one"), AllocationStateChange{});
  EXPECT_EQ(job("one").reason, "runs");
  EXPECT_TRUE(noted("one", "Slurm has resumed it"));
}

TEST_F(Allocations, AnElasticJobRunsWithTheGrantedWorkers) {
  JobSpec spec = mpi("dist", "default", 3);
  spec.scheduling.min_workers = 1;
  submit(spec);
  give("dist", 1);

  EXPECT_EQ(job("dist").phase, Phase::kRunning);
  EXPECT_TRUE(noted("dist", "(Slurm job 17), attempt 1, with 2 of 3 workers"));
  EXPECT_TRUE(job("dist").tasks[3].node.empty());
}

TEST_F(Allocations, AResizableJobDoesNotGrowIntoFreeResources) {
  JobSpec spec = mpi("dist", "default", 3);
  spec.scheduling.min_workers = 1;
  spec.scheduling.resize = job::Resize::kLive;
  submit(spec);
  give("dist", 1);
  ASSERT_EQ(job("dist").reason, "runs with 2 of 3 workers");

  engine_.end_for_good(gang("dist"), "worker-1", {.signal = 9});
  settle();

  EXPECT_EQ(job("dist").reason, "runs with 1 of 3 workers");
  EXPECT_FALSE(was_called("start " + name_of(gang("dist")) + " worker-2"));
  EXPECT_EQ(controller_->projects().status("default")->allocated.gpu_milli, 1000);

  come_back();
  EXPECT_EQ(job("dist").reason, "runs with 1 of 3 workers");
  EXPECT_FALSE(noted("dist", "keys of the job are not available"));
}

}  // namespace
}  // namespace muster::control
