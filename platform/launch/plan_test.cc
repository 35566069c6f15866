#include <gtest/gtest.h>

#include <algorithm>

#include "base/fake_random.h"
#include "launch/test_plan.h"

namespace muster::launch {
namespace {

using job::Job;
using job::Kind;
using job::Sandbox;

GangPlan plan_of(const Job& job, const std::string& generated = "/generated",
                 std::vector<std::string> gpus = {}) {
  base::FakeRandom random;
  const Site site{.user = "ada",
                  .generated_folder =
                      [&](std::string_view task) {
                        return generated == "/generated" ? generated
                                                         : generated + "/" + std::string(task);
                      },
                  .gpus_of = [&](const std::string&) { return gpus; }};
  auto plan = plan_gang(job, make_seed(random), site);
  EXPECT_TRUE(plan);
  return *std::move(plan);
}

GangPlan plan_of(const job::JobSpec& spec, const std::string& generated = "/generated") {
  return plan_of(placed(spec), generated);
}

job::JobSpec mpi_spec() {
  return {.name = "dist",
          .kind = Kind::kMpi,
          .command = {"mpirun", "--hostfile", "/generated/hostfile", "train"},
          .workers = 2,
          .slots_per_worker = 4,
          .environment = {{"TOKEN", "t"}},
          .folder = "/home/ada"};
}

job::JobSpec single_spec() {
  return {.name = "one", .command = {"true"}, .folder = "/"};
}

TEST(PlanGang, StartsTheWorkersFirstAndThenTheLauncherWithTheCommand) {
  const GangPlan plan = plan_of(mpi_spec());

  ASSERT_EQ(plan.first.size(), 2U);
  ASSERT_EQ(plan.then.size(), 1U);
  EXPECT_TRUE(plan.first[0].argv.empty());
  EXPECT_TRUE(plan.first[0].ssh);
  EXPECT_EQ(plan.first[1].hostname, "dist-worker-1");
  EXPECT_EQ(plan.then[0].argv, mpi_spec().command);
  EXPECT_FALSE(plan.then[0].ssh);
}

TEST(PlanGang, DetectsRankPrefixesInTheOutputOfTheLeader) {
  job::JobSpec spec = mpi_spec();
  EXPECT_TRUE(plan_of(spec).then[0].tags_ranks);
  EXPECT_FALSE(plan_of(spec).then[0].prepends_rank);
  EXPECT_FALSE(plan_of(spec).first[0].tags_ranks);

  spec.command = {"mpiexec.hydra", "-l", "train"};
  EXPECT_TRUE(plan_of(spec).then[0].prepends_rank);

  spec.terminal = true;  // a terminal shows the program's bytes unchanged
  EXPECT_FALSE(plan_of(spec).then[0].tags_ranks || plan_of(spec).then[0].prepends_rank);
}

TEST(PlanGang, WritesTheHostfileWithTheSlotsOfTheWorkersWithoutTheLauncher) {
  const GangPlan plan = plan_of(mpi_spec());

  EXPECT_EQ(find_file(plan.then[0], "hostfile")->content,
            "dist-worker-0 slots=4\ndist-worker-1 slots=4\n");
}

TEST(PlanGang, WritesTheParametersOfATrialForEveryTask) {
  job::JobSpec spec = mpi_spec();
  spec.environment["MUSTER_PARAMETERS"] = R"({"lr":0.1})";
  const GangPlan plan = plan_of(spec);
  EXPECT_EQ(find_file(plan.then[0], "parameters.json")->content, "{\"lr\":0.1}\n");
  EXPECT_NE(find_file(plan.first[1], "parameters.json"), nullptr);
  EXPECT_EQ(find_file(plan_of(mpi_spec()).then[0], "parameters.json"), nullptr);
}

TEST(PlanGang, PinsHostKeysAndChecksThem) {
  const TaskPlan launcher = plan_of(mpi_spec()).then[0];
  const std::string& config = find_file(launcher, "ssh/config")->content;

  EXPECT_NE(config.find("StrictHostKeyChecking yes"), std::string::npos);
  EXPECT_NE(config.find("UserKnownHostsFile \"/generated/ssh/known_hosts\""), std::string::npos);
  EXPECT_NE(find_file(launcher, "ssh/known_hosts")->content.find("dist-worker-1 ssh-ed25519 "),
            std::string::npos);
}

TEST(PlanGang, HasAKeyForTheClientAndAnotherForTheHosts) {
  const TaskPlan worker = plan_of(mpi_spec()).first[0];

  EXPECT_NE(find_file(worker, "ssh/id_ed25519")->content,
            find_file(worker, "ssh/host_ed25519")->content);
  EXPECT_EQ(find_file(worker, "ssh/known_hosts")
                ->content.find(find_file(worker, "ssh/authorized_keys")->content),
            std::string::npos);
}

TEST(PlanGang, MakesEveryFilePrivateAndMarksSecretFiles) {
  for (const TaskPlan& task : plan_of(mpi_spec()).first) {
    for (const PlannedFile& file : task.files) {
      EXPECT_EQ(file.mode & 0077, 0U) << file.path;
      const bool holds_secret = file.content.find("PRIVATE KEY") != std::string::npos ||
                                file.content.find("TOKEN") != std::string::npos;
      EXPECT_EQ(file.secret, holds_secret) << file.path;
    }
  }
}

TEST(PlanGang, DirectsOpenMpi4And5ToTheHostfile) {
  const auto environment = plan_of(mpi_spec()).then[0].environment;

  EXPECT_EQ(environment.at("OMPI_MCA_orte_default_hostfile"), "/generated/hostfile");
  EXPECT_EQ(environment.at("PRTE_MCA_prte_default_hostfile"), "/generated/hostfile");
  EXPECT_EQ(environment.at("OMPI_MCA_plm_rsh_args"), environment.at("PRTE_MCA_plm_ssh_args"));
}

TEST(PlanGang, UsersVariablesTakePrecedence) {
  job::JobSpec spec = mpi_spec();
  spec.environment["OMPI_MCA_btl_tcp_if_include"] = "eth0";

  EXPECT_EQ(plan_of(spec).then[0].environment.at("OMPI_MCA_btl_tcp_if_include"), "eth0");
}

TEST(PlanGang, TheRendezvousIsOnTheFirstWorkersAddress) {
  const GangPlan plan = plan_of(mpi_spec());

  EXPECT_TRUE(
      plan.first[1].environment.at("MUSTER_RENDEZVOUS").starts_with(plan.first[0].address + ":"));
}

TEST(PlanGang, ReplacesGeneratedPathsInTheCommandWithoutASandbox) {
  job::JobSpec spec = mpi_spec();
  spec.sandbox = Sandbox::kNone;

  const TaskPlan launcher = plan_of(spec, "/state/j1").then[0];

  EXPECT_EQ(launcher.argv[2], "/state/j1/launcher/hostfile");
  EXPECT_EQ(launcher.environment.at("OMPI_MCA_plm_rsh_args"), "-F /state/j1/launcher/ssh/config");
}

TEST(PlanGang, ASingleTaskNeedsNeitherKeysNorAHostfile) {
  const GangPlan plan = plan_of(single_spec());

  EXPECT_TRUE(plan.first.empty());
  ASSERT_EQ(plan.then.size(), 1U);
  for (const PlannedFile& file : plan.then[0].files) EXPECT_TRUE(file.path.starts_with("bash/"));
  EXPECT_EQ(plan.then[0].environment.count("OMPI_MCA_plm_rsh_args"), 0U);
}

TEST(PlanGang, GivesATaskItsProjectItsNodeAndItsNumberOfRestarts) {
  Job job = placed(single_spec());
  job.spec.project = "team-a";
  job.restarts = 3;

  const TaskPlan task = plan_of(job).then[0];

  EXPECT_EQ(task.node, "n1");
  EXPECT_EQ(task.environment.at("MUSTER_PROJECT"), "team-a");
  EXPECT_EQ(task.environment.at("MUSTER_RESTART_COUNT"), "3");
}

TEST(PlanGang, GivesATaskTheAddressForMetricsAndTheEngineItsGpus) {
  Job job = placed(single_spec());
  job.tasks[0].devices = {0, 2};

  const TaskPlan task = plan_of(job, "/state", {"GPU-a"}).then[0];

  EXPECT_EQ(task.environment.at("MUSTER_METRICS"), "/state/main/metrics");
  EXPECT_EQ(task.gpus, (std::vector<std::string>{"GPU-a", "2"}));
  EXPECT_TRUE(plan_of(single_spec()).then[0].gpus.empty());
}

// --- partly placed gangs

/// A job of which the launcher and the second of three workers were placed.
Job reduced() {
  job::JobSpec spec = mpi_spec();
  spec.workers = 3;
  Job job = placed(spec);
  job.tasks[1].node.clear();
  job.tasks[3].node.clear();
  return job;
}

TEST(PlanGang, PlansOnlyThePlacedTasks) {
  const GangPlan plan = plan_of(reduced());

  ASSERT_EQ(plan.first.size(), 1U);
  ASSERT_EQ(plan.then.size(), 1U);
  EXPECT_EQ(plan.first[0].task, "worker-1");
  EXPECT_EQ(plan.then[0].task, "launcher");
}

TEST(PlanGang, NamesNoTaskThatWasNotPlaced) {
  const GangPlan plan = plan_of(reduced());

  EXPECT_EQ(find_file(plan.then[0], "hostfile")->content, "dist-worker-1 slots=4\n");
  for (const TaskPlan& task : {plan.first[0], plan.then[0]}) {
    ASSERT_EQ(task.hosts.size(), 2U);
    EXPECT_EQ(task.hosts[0].first, "dist-launcher");
    EXPECT_EQ(task.hosts[1].first, "dist-worker-1");
    for (const PlannedFile& file : task.files) {
      EXPECT_EQ(file.content.find("worker-0"), std::string::npos) << file.path;
      EXPECT_EQ(file.content.find("worker-2"), std::string::npos) << file.path;
    }
  }
}

TEST(PlanGang, CountsThePlacedWorkersAndGathersOnTheFirstOfThem) {
  const GangPlan plan = plan_of(reduced());

  EXPECT_EQ(plan.then[0].environment.at("MUSTER_WORKERS"), "1");
  EXPECT_TRUE(
      plan.then[0].environment.at("MUSTER_RENDEZVOUS").starts_with(plan.first[0].address + ":"));
}

TEST(PlanGang, RefusesAGangWhoseLauncherWasNotPlaced) {
  Job job = placed(mpi_spec());
  job.tasks[0].node.clear();
  base::FakeRandom random;

  const auto plan = plan_gang(job, make_seed(random), {});

  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, base::ErrorCode::kInternal);
}

// --- devices

const std::string& visible(const TaskPlan& task) {
  return task.environment.at("CUDA_VISIBLE_DEVICES");
}

/// Two workers with one GPU each, on a node with four.
Job with_gpus() {
  job::JobSpec spec = mpi_spec();
  spec.resources.gpus = 1;
  Job job = placed(spec);
  for (const size_t worker : {1, 2}) {
    job.tasks[worker].devices = {static_cast<int>(worker) + 1};
    job.tasks[worker].gpu_share_milli = 1000;
  }
  return job;
}

TEST(PlanGang, ShowsEachWorkerItsOwnDevicesAndTheLauncherNone) {
  const GangPlan plan = plan_of(with_gpus());

  EXPECT_EQ(visible(plan.first[0]), "2");
  EXPECT_EQ(visible(plan.first[1]), "3");
  EXPECT_EQ(visible(plan.then[0]), "");
}

TEST(PlanGang, PassesTheDevicesToSshSessionsAndToEveryRank) {
  const TaskPlan worker = plan_of(with_gpus()).first[0];

  EXPECT_NE(find_file(worker, "session")->content.find("export CUDA_VISIBLE_DEVICES='2'\n"),
            std::string::npos);
  EXPECT_NE(find_file(worker, "devices")->content.find("export CUDA_VISIBLE_DEVICES='2'\n"),
            std::string::npos);
}

TEST(PlanGang, IgnoresAUsersVariableThatWouldShowOtherDevices) {
  Job job = with_gpus();
  job.spec.environment["CUDA_VISIBLE_DEVICES"] = "0,1,2,3";

  const GangPlan plan = plan_of(job);

  EXPECT_EQ(visible(plan.first[0]), "2");
  EXPECT_EQ(visible(plan.then[0]), "");
}

TEST(PlanGang, HidesTheNodesGpusFromAJobWithoutClaims) {
  Job job = placed(single_spec());
  job.spec.environment["CUDA_VISIBLE_DEVICES"] = "0";

  EXPECT_EQ(visible(plan_of(job, "/generated", {"0", "1"}).then[0]), "");
}

TEST(PlanGang, KeepsTheUsersVariableOnANodeWithoutGpus) {
  Job job = placed(mpi_spec());
  EXPECT_EQ(plan_of(job).then[0].environment.count("CUDA_VISIBLE_DEVICES"), 0U);
  EXPECT_EQ(find_file(plan_of(job).first[0], "devices"), nullptr);

  job.spec.environment["CUDA_VISIBLE_DEVICES"] = "0";
  EXPECT_EQ(visible(plan_of(job).then[0]), "0");
}

TEST(PlanGang, UsesTheNodesNamesOfDevices) {
  const GangPlan plan = plan_of(with_gpus(), "/generated", {"GPU-a", "GPU-b", "GPU-c", "GPU-d"});

  EXPECT_EQ(visible(plan.first[0]), "GPU-c");
}

TEST(PlanGang, DependsOnlyOnItsSeed) {
  EXPECT_EQ(plan_of(mpi_spec()).first, plan_of(mpi_spec()).first);
}

}  // namespace
}  // namespace muster::launch
