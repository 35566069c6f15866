// How the tasks of a gang reach each other: by ssh or by Muster's own remote shell, on one machine,
// on a network of the job's own, or by the addresses of their nodes.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/fake_random.h"
#include "launch/test_plan.h"

namespace muster::launch {
namespace {

using job::Job;
using job::Kind;
using job::LaunchBy;

using HostAddresses = std::vector<std::pair<std::string, std::string>>;

job::JobSpec mpi_spec_with_leader_slots(int leader_slots = 0) {
  return {.name = "dist",
          .kind = Kind::kMpi,
          .command = {"mpirun", "train"},
          .workers = 2,
          .leader_slots = leader_slots,
          .folder = "/work"};
}

/// The launcher and worker-0 are on n1, worker-1 is on `last`.
GangPlan plan_on_nodes(const job::JobSpec& spec, Reach reach, LaunchBy launch,
                       const std::string& last) {
  Job job{.id = "j1", .spec = spec, .attempt = 1};
  job.tasks = job::tasks_of(spec);
  for (job::Task& task : job.tasks) task.node = "n1";
  job.tasks.back().node = last;
  base::FakeRandom random;
  auto plan = plan_gang(
      job, make_seed(random),
      {.user = "ada",
       .generated_folder = [](std::string_view) { return std::string("/generated"); },
       .reach = reach,
       .address_of = [](const std::string& node) { return node == "n1" ? "10.9.0.1" : "10.9.0.2"; },
       .remote_shell = "/muster/bin/muster-rsh",
       .launch = launch});
  EXPECT_TRUE(plan);
  return *std::move(plan);
}

GangPlan plan_across_nodes(const job::JobSpec& spec, Reach reach,
                           LaunchBy launch = LaunchBy::kSsh) {
  return plan_on_nodes(spec, reach, launch, "n2");
}

std::string ssh_port_of(const TaskPlan& task) {
  return std::to_string(task.ssh->port);
}

TEST(PlanReach, UsesNamesOnANetworkThatResolvesThem) {
  const GangPlan plan = plan_across_nodes(mpi_spec_with_leader_slots(1), Reach::kNames);
  const TaskPlan& launcher = plan.then[0];

  EXPECT_EQ(plan.first[1].address, "dist-worker-1");
  EXPECT_EQ(plan.first[1].ssh->bind, "0.0.0.0");
  EXPECT_TRUE(launcher.environment.at("MUSTER_RENDEZVOUS").starts_with("dist-worker-0:"));
  EXPECT_NE(find_file(launcher, "ssh/config")
                ->content.find("Host dist-worker-1\n  HostName dist-worker-1\n  Port " +
                               ssh_port_of(plan.first[1]) + "\n  User ada\n"),
            std::string::npos);
  // The second name of the launcher exists only for ssh.
  EXPECT_NE(find_file(launcher, "ssh/config")
                ->content.find("Host dist-launcher-0\n  HostName dist-launcher\n"),
            std::string::npos);
  EXPECT_EQ(launcher.hosts, HostAddresses());
  EXPECT_FALSE(launcher.environment.contains("OMPI_MCA_btl_tcp_if_include"));
  EXPECT_FALSE(launcher.environment.contains("OMPI_MCA_oob_tcp_if_include"));
}

TEST(PlanReach, ShortensTheKeyExchangeWithinAMachineOnly) {
  const auto shortens = [](Reach reach, const std::string& last) {
    const GangPlan plan = plan_on_nodes(mpi_spec_with_leader_slots(), reach, LaunchBy::kSsh, last);
    const std::string& config = find_file(plan.then[0], "ssh/config")->content;
    return config.find("KexAlgorithms curve25519-sha256@libssh.org\n") != std::string::npos;
  };
  EXPECT_TRUE(shortens(Reach::kLoopback, "n1"));
  EXPECT_TRUE(shortens(Reach::kNames, "n1"));
  EXPECT_FALSE(shortens(Reach::kNames, "n2"));
  EXPECT_FALSE(shortens(Reach::kHosts, "n2"));
}

TEST(PlanReach, UsesNodeAddressesAndUniquePortsOnHosts) {
  const GangPlan plan = plan_across_nodes(mpi_spec_with_leader_slots(1), Reach::kHosts);
  const TaskPlan& launcher = plan.then[0];

  EXPECT_EQ(launcher.address, "10.9.0.1");
  EXPECT_EQ(plan.first[0].address, "10.9.0.1");
  EXPECT_EQ(plan.first[1].address, "10.9.0.2");
  EXPECT_NE(launcher.ssh->port, plan.first[0].ssh->port);
  EXPECT_EQ(plan.first[0].ssh->bind, "0.0.0.0");
  EXPECT_NE(find_file(launcher, "ssh/config")
                ->content.find("Host dist-worker-0\n  HostName 10.9.0.1\n  Port " +
                               ssh_port_of(plan.first[0]) + "\n"),
            std::string::npos);
  EXPECT_TRUE(launcher.environment.at("MUSTER_RENDEZVOUS").starts_with("10.9.0.1:"));
  EXPECT_EQ(launcher.environment.at("OMPI_MCA_btl_tcp_if_include"), "10.9.0.0/24");
  EXPECT_EQ(launcher.environment.at("OMPI_MCA_oob_tcp_if_include"), "10.9.0.0/24");
}

TEST(PlanReach, ResolvesNoWorkerToTheLaunchersOwnAddressOnHosts) {
  const GangPlan plan = plan_across_nodes(mpi_spec_with_leader_slots(1), Reach::kHosts);

  EXPECT_EQ(plan.then[0].hosts, (HostAddresses{{"dist-launcher", "10.9.0.1"}}));
  EXPECT_EQ(plan.first[0].hosts,
            (HostAddresses{{"dist-worker-0", "10.9.0.1"}, {"dist-launcher", "10.9.0.1"}}));
  EXPECT_EQ(plan.first[1].hosts,
            (HostAddresses{{"dist-worker-1", "10.9.0.2"}, {"dist-launcher", "10.9.0.1"}}));
}

TEST(PlanReach, GivesTorchAndTensorFlowAddressesOnHostsAndNamesOnANetwork) {
  const job::JobSpec torch{
      .name = "ddp", .kind = Kind::kTorch, .command = {"train"}, .workers = 1, .folder = "/"};
  const job::JobSpec grpc{
      .name = "tf", .kind = Kind::kGrpc, .command = {"train"}, .workers = 1, .folder = "/"};

  EXPECT_EQ(plan_across_nodes(torch, Reach::kHosts).first[0].environment.at("MASTER_ADDR"),
            "10.9.0.1");
  EXPECT_EQ(plan_across_nodes(torch, Reach::kNames).first[0].environment.at("MASTER_ADDR"),
            "ddp-master");
  EXPECT_TRUE(plan_across_nodes(grpc, Reach::kHosts)
                  .then[0]
                  .environment.at("MASTER")
                  .starts_with("['10.9.0.1:"));
}

TEST(PlanReach, RefusesANodeWithoutAnAddress) {
  Job job{.id = "j1", .spec = mpi_spec_with_leader_slots()};
  job.tasks = job::tasks_of(job.spec);
  for (job::Task& task : job.tasks) task.node = "n1";
  base::FakeRandom random;

  const auto plan = plan_gang(
      job, make_seed(random),
      {.reach = Reach::kHosts, .address_of = [](const std::string&) { return std::string(); }});

  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().what, "node 'n1' has no address for other nodes");
}

// --- by Muster's own remote shell

TEST(PlanAgent, GivesTasksTheKeyAndTheHostsInsteadOfSshFiles) {
  const GangPlan plan =
      plan_across_nodes(mpi_spec_with_leader_slots(1), Reach::kHosts, LaunchBy::kAgent);

  for (const TaskPlan& task : {plan.first[0], plan.first[1], plan.then[0]}) {
    EXPECT_EQ(find_file(task, "rsh/hosts")->content,
              "dist-worker-0 10.9.0.1 " + ssh_port_of(plan.first[0]) + "\ndist-worker-1 10.9.0.2 " +
                  ssh_port_of(plan.first[1]) + "\ndist-launcher-0 10.9.0.1 " +
                  ssh_port_of(plan.then[0]) + "\n");
    const PlannedFile* const key = find_file(task, "rsh/key");
    ASSERT_NE(key, nullptr);
    EXPECT_EQ(key->content.size(), 65U);
    EXPECT_TRUE(key->secret);
    EXPECT_EQ(key->mode, 0600U);
    for (const PlannedFile& file : task.files) EXPECT_FALSE(file.path.starts_with("ssh/"));
    EXPECT_EQ(task.environment.at("OMPI_MCA_plm_rsh_agent"), "/muster/bin/muster-rsh");
    EXPECT_EQ(task.ssh->command, (std::vector<std::string>{"/muster/bin/muster-rsh", "--serve",
                                                           "/generated/rsh", "/work"}));
  }
}

TEST(PlanAgent, HasAnotherKeyForEveryAttempt) {
  Job job{.id = "j1", .spec = mpi_spec_with_leader_slots(), .attempt = 1};
  job.tasks = job::tasks_of(job.spec);
  for (job::Task& task : job.tasks) task.node = "n1";
  const Site site{.generated_folder = [](std::string_view) { return std::string("/generated"); },
                  .remote_shell = "/muster/bin/muster-rsh",
                  .launch = LaunchBy::kAgent};
  base::FakeRandom random;
  const auto key = [&] {
    return find_file(plan_gang(job, make_seed(random), site)->then[0], "rsh/key")->content;
  };

  EXPECT_NE(key(), key());
}

TEST(PlanAgent, AShellInATaskFindsItAsRsh) {
  const TaskPlan launcher =
      plan_across_nodes(mpi_spec_with_leader_slots(), Reach::kLoopback, LaunchBy::kAgent).then[0];

  EXPECT_NE(find_file(launcher, "bin/rsh"), nullptr);
  EXPECT_EQ(find_file(launcher, "bin/ssh"), nullptr);
}

TEST(PlanMpiChoice, IsOnlyTheLaunchersAndRanksAreCountedEverywhere) {
  const GangPlan plan = plan_across_nodes(mpi_spec_with_leader_slots(), Reach::kNames);

  EXPECT_TRUE(plan.then[0].mpi);
  EXPECT_FALSE(plan.first[0].mpi);
  EXPECT_TRUE(plan.first[0].takes_ranks);
  // It may run some ranks, or, with a wrong mpirun, all.
  EXPECT_TRUE(plan.then[0].takes_ranks);
  EXPECT_FALSE(plan.then[0].ssh);
  EXPECT_TRUE(plan_across_nodes(mpi_spec_with_leader_slots(1), Reach::kNames).then[0].ssh);
}

}  // namespace
}  // namespace muster::launch
