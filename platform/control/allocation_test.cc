#include "control/allocation.h"

#include <gtest/gtest.h>

namespace muster::control {
namespace {

using engine::AllocationGranted;
using engine::AllocationRequest;
using job::Job;
using job::JobSpec;
using schedule::TaskPlace;

Job job_with_tasks(JobSpec spec) {
  Job job{.id = "j1", .spec = std::move(spec)};
  job.tasks = job::tasks_of(job.spec);
  return job;
}

JobSpec elastic() {
  return {.name = "dist",
          .project = "team-a",
          .kind = job::Kind::kMpi,
          .command = {"mpirun", "train"},
          .workers = 3,
          .resources = {.gpus = 1, .cpu_milli = 8'000},
          .leader = {.resources = {.cpu_milli = 2'000}},
          .scheduling = {.min_workers = 2}};
}

TEST(AllocationRequest, HasTheTasksInOrderWithTheClaimsOfTheirRoles) {
  const AllocationRequest request = allocation_request(job_with_tasks(elastic()), {});

  const job::Resources leader{.cpu_milli = 2'000};
  const job::Resources worker{.gpus = 1, .cpu_milli = 8'000};
  const std::vector<engine::TaskRequest> tasks{
      {.task = "launcher",
       .role = job::TaskRole::kLauncher,
       .resources = leader,
       .only_launches = true},
      {.task = "worker-0", .role = job::TaskRole::kWorker, .resources = worker},
      {.task = "worker-1", .role = job::TaskRole::kWorker, .resources = worker},
      {.task = "worker-2",
       .role = job::TaskRole::kWorker,
       .resources = worker,
       .may_be_missing = true}};
  EXPECT_EQ(request.tasks, tasks);
  EXPECT_EQ(request.job, "dist");
  EXPECT_EQ(request.project, "team-a");
}

TEST(AllocationRequest, HasThePlacementAndTheTimeLimit) {
  JobSpec spec = elastic();
  spec.scheduling.node_pools = {"a100", "h100"};
  spec.scheduling.gpu_models = {"A100"};
  spec.scheduling.time_limit = std::chrono::hours(2);
  spec.grace = std::chrono::seconds(20);
  spec.start_timeout = std::chrono::seconds(40);
  spec.slurm = {.qos = "high"};
  Job job = job_with_tasks(spec);
  job.avoided_nodes = {"n3"};

  const AllocationRequest request = allocation_request(job, {"n1", "n3"});

  EXPECT_EQ(request.node_pools, spec.scheduling.node_pools);
  EXPECT_EQ(request.gpu_models, spec.scheduling.gpu_models);
  EXPECT_EQ(request.time_limit, std::chrono::hours(2));
  EXPECT_EQ(request.grace, std::chrono::seconds(20));
  EXPECT_EQ(request.start_timeout, std::chrono::seconds(40));
  EXPECT_EQ(request.slurm, spec.slurm);
  EXPECT_EQ(request.avoided_nodes, (std::vector<std::string>{"n1", "n3"}));
}

TEST(AllocationRequest, OfARigidJobHasNoOptionalTasks) {
  JobSpec spec = elastic();
  spec.scheduling.min_workers.reset();
  spec.kind = job::Kind::kGrpc;
  spec.parameter_servers = 2;

  const AllocationRequest request = allocation_request(job_with_tasks(spec), {});

  ASSERT_EQ(request.tasks.size(), 6U);
  EXPECT_EQ(request.tasks.back().task, "ps-1");
  for (const engine::TaskRequest& task : request.tasks)
    EXPECT_FALSE(task.may_be_missing) << task.task;
}

TEST(AllocationRequest, IsDescribedInLines) {
  JobSpec spec = elastic();
  spec.scheduling.time_limit = std::chrono::hours(2);
  spec.slurm = {.partition = "gpu", .account = "physics", .constraint = "a100&nvlink"};

  const auto lines = describe(allocation_request(job_with_tasks(spec), {"n1", "n2"}));

  EXPECT_EQ(lines, (std::vector<std::string>{"launcher (2 CPUs), 3 workers (1 GPU and 8 CPUs each)",
                                             "or up to 1 worker fewer", "in partition gpu",
                                             "for account physics", "on nodes with a100&nvlink",
                                             "not on nodes n1, n2", "for 2h at the most"}));
}

TEST(AllocationRequest, AmountsToTheSumOfAllClaims) {
  EXPECT_EQ(requested_amounts(job_with_tasks(elastic())), (schedule::Amounts{3'000, 26'000, 0}));
}

TEST(AllocationRequest, CannotRequireOneDomainForAllTasks) {
  JobSpec spec = elastic();
  EXPECT_TRUE(check_topology(spec, "Slurm"));
  spec.scheduling.required_topology = "rack";

  const auto refused = check_topology(spec, "Slurm");

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kRefused);
  EXPECT_NE(refused.error().what.find("'dist' requires one rack"), std::string::npos);
}

TEST(AllocationGranted, BecomesAPlaceForEachTask) {
  const Job job = job_with_tasks(elastic());
  const AllocationGranted given{.places = {{.task = "worker-0", .node = "n2", .devices = {1}},
                                           {.task = "launcher", .node = "n1"},
                                           {.task = "worker-1", .node = "n2", .devices = {0}}},
                                .slurm_job = 17};

  const auto places = places_in(given, job);

  ASSERT_TRUE(places);
  ASSERT_EQ(places->size(), 4U);
  EXPECT_EQ((*places)[0], (TaskPlace{.node = "n1"}));
  EXPECT_EQ((*places)[1], (TaskPlace{.node = "n2", .devices = {1}, .share_milli = 1000}));
  EXPECT_EQ((*places)[2], (TaskPlace{.node = "n2", .devices = {0}, .share_milli = 1000}));
  EXPECT_FALSE((*places)[3]);
}

TEST(AllocationGranted, MustMatchTheRequest) {
  const Job job = job_with_tasks(elastic());
  const AllocationGranted all{.places = {{.task = "launcher", .node = "n1"},
                                         {.task = "worker-0", .node = "n1"},
                                         {.task = "worker-1", .node = "n2"}},
                              .slurm_job = 17};
  ASSERT_TRUE(places_in(all, job));

  AllocationGranted without_one = all;
  without_one.places.pop_back();
  const auto missing = places_in(without_one, job);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().what, "its allocation (Slurm job 17) has no place for worker-1");

  for (const char* const stranger : {"worker-0", "worker-9"}) {
    AllocationGranted with_more = all;
    with_more.places.push_back({.task = stranger, .node = "n2"});
    EXPECT_FALSE(places_in(with_more, job)) << stranger;
  }
}

TEST(AllocationPending, AreEqualIfOnlyTimesAndTheSlurmJobDiffer) {
  using job::SlurmWaits;
  const SlurmWaits waits{.slurm_job = 1, .reason = "Resources"};
  SlurmWaits later{.slurm_job = 2, .reason = "Resources", .expected = base::Time{}};
  EXPECT_TRUE(is_same_wait(waits, later));
  later.reason = "Priority";
  EXPECT_FALSE(is_same_wait(waits, later));
  EXPECT_FALSE(is_same_wait(job::Remark{}, waits));
}

}  // namespace
}  // namespace muster::control
