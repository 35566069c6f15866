#include "launch/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace muster::launch {
namespace {

using job::Job;
using job::Kind;
using job::Sandbox;

GangPlan plan_of(job::JobSpec spec, const std::string& generated = "/generated") {
  Job job{.id = "j1", .spec = std::move(spec), .attempt = 2};
  job.tasks = job::tasks_of(job.spec);
  base::FakeRandom random;
  const Site site{.user = "ada", .generated_folder = [&](std::string_view task) {
                    return generated == "/generated" ? generated
                                                     : generated + "/" + std::string(task);
                  }};
  auto plan = plan_gang(job, make_seed(random), site);
  EXPECT_TRUE(plan);
  return *std::move(plan);
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

const PlannedFile* find_file(const TaskPlan& task, const std::string& path) {
  const auto found = std::find_if(task.files.begin(), task.files.end(),
                                  [&](const PlannedFile& file) { return file.path == path; });
  return found == task.files.end() ? nullptr : &*found;
}

TEST(PlanGang, StartsTheWorkersFirstAndThenTheLauncherThatAloneRunsTheCommand) {
  const GangPlan plan = plan_of(mpi_spec());

  ASSERT_EQ(plan.first.size(), 2U);
  ASSERT_EQ(plan.then.size(), 1U);
  EXPECT_TRUE(plan.first[0].argv.empty());
  EXPECT_TRUE(plan.first[0].ssh);
  EXPECT_EQ(plan.first[1].hostname, "dist-worker-1");
  EXPECT_EQ(plan.then[0].argv, mpi_spec().command);
  EXPECT_FALSE(plan.then[0].ssh);
}

TEST(PlanGang, WritesTheHostfileWithTheSlotsOfEachWorkerAndNotTheLauncher) {
  const GangPlan plan = plan_of(mpi_spec());

  EXPECT_EQ(find_file(plan.then[0], "hostfile")->content,
            "dist-worker-0 slots=4\ndist-worker-1 slots=4\n");
}

TEST(PlanGang, KeepsHostKeysPinnedAndCheckingOn) {
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

TEST(PlanGang, ClosesEveryFileToOthersAndMarksWhatIsSecret) {
  for (const TaskPlan& task : plan_of(mpi_spec()).first) {
    for (const PlannedFile& file : task.files) {
      EXPECT_EQ(file.mode & 0077, 0U) << file.path;
      const bool holds_secret = file.content.find("PRIVATE KEY") != std::string::npos ||
                                file.content.find("TOKEN") != std::string::npos;
      EXPECT_EQ(file.secret, holds_secret) << file.path;
    }
  }
}

TEST(PlanGang, PointsOpenMpiFourAndFiveAtTheHostfile) {
  const auto environment = plan_of(mpi_spec()).then[0].environment;

  EXPECT_EQ(environment.at("OMPI_MCA_orte_default_hostfile"), "/generated/hostfile");
  EXPECT_EQ(environment.at("PRTE_MCA_prte_default_hostfile"), "/generated/hostfile");
  EXPECT_EQ(environment.at("OMPI_MCA_plm_rsh_args"), environment.at("PRTE_MCA_plm_ssh_args"));
}

TEST(PlanGang, LetsTheUsersVariablesWin) {
  job::JobSpec spec = mpi_spec();
  spec.environment["OMPI_MCA_btl_tcp_if_include"] = "eth0";

  EXPECT_EQ(plan_of(spec).then[0].environment.at("OMPI_MCA_btl_tcp_if_include"), "eth0");
}

TEST(PlanGang, GathersTheRanksOnTheFirstWorkersOwnAddress) {
  const GangPlan plan = plan_of(mpi_spec());

  EXPECT_TRUE(
      plan.first[1].environment.at("MUSTER_RENDEZVOUS").starts_with(plan.first[0].address + ":"));
}

TEST(PlanGang, TurnsGeneratedPathsOfTheCommandToWhereTheyAreWithoutASandbox) {
  job::JobSpec spec = mpi_spec();
  spec.sandbox = Sandbox::kNone;

  const TaskPlan launcher = plan_of(spec, "/state/j1").then[0];

  EXPECT_EQ(launcher.argv[2], "/state/j1/launcher/hostfile");
  EXPECT_EQ(launcher.environment.at("OMPI_MCA_plm_rsh_args"), "-F /state/j1/launcher/ssh/config");
}

TEST(PlanGang, ASingleTaskNeedsNeitherKeysNorAHostfile) {
  const GangPlan plan = plan_of({.name = "one", .command = {"true"}, .folder = "/"});

  EXPECT_TRUE(plan.first.empty());
  ASSERT_EQ(plan.then.size(), 1U);
  EXPECT_TRUE(plan.then[0].files.empty());
  EXPECT_EQ(plan.then[0].environment.count("OMPI_MCA_plm_rsh_args"), 0U);
}

TEST(PlanGang, FollowsFromItsSeed) {
  EXPECT_EQ(plan_of(mpi_spec()).first, plan_of(mpi_spec()).first);
}

}  // namespace
}  // namespace muster::launch
