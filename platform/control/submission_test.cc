#include "control/submission.h"

#include <gtest/gtest.h>

#include "base/test_faults.h"
#include "control/test_cluster.h"

namespace muster::control {
namespace {

job::JobSpec spec_mounting(const std::string& path, std::vector<std::string> capabilities = {}) {
  job::JobSpec spec;
  spec.volumes = {{.kind = job::Volume::Kind::kStorage, .source = "data", .target = "/storage"},
                  {.kind = job::Volume::Kind::kHostPath, .source = path, .target = "/data"}};
  spec.container.capabilities = std::move(capabilities);
  return spec;
}

TEST(ContainerPolicy, TheOneUserOfAServerMayHaveAll) {
  EXPECT_TRUE(check_container_policy(spec_mounting("/etc", {"SYS_ADMIN"}), {}));
}

TEST(ContainerPolicy, OfASharedServerAllowsOnlyConfiguredSettings) {
  const ContainerPolicy policy{
      .is_shared = true, .host_paths = {"/data/"}, .capabilities = {"SYS_PTRACE"}};

  for (const char* path : {"/data", "/data/", "/etc/../data"}) {
    EXPECT_TRUE(check_container_policy(spec_mounting(path, {"SYS_PTRACE"}), policy)) << path;
  }
  // A job that may write to /data may leave a link there that leads anywhere.
  for (const char* path : {"/", "/etc", "/data/link", "/database", "/data/../etc"}) {
    EXPECT_FALSE(check_container_policy(spec_mounting(path), policy)) << path;
  }
}

TEST(ContainerPolicy, ReportsAllRefusedSettings) {
  const auto refused = check_container_policy(spec_mounting("/etc", {"SYS_ADMIN", "NET_RAW"}),
                                              ContainerPolicy{.is_shared = true});

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kRefused);
  ASSERT_EQ(refused.error().faults.size(), 3U);
  EXPECT_EQ(refused.error().faults[0].field, "volumes[1].source");
  EXPECT_EQ(refused.error().faults[2].what, "'NET_RAW' is not allowed");
}

TEST(KubernetesPolicy, OfASharedServerAllowsOnlyConfiguredDevices) {
  job::JobSpec spec;
  spec.kubernetes.devices = {{"nvidia.com/mig-1g.10gb", "1"}, {"rdma/hca", "1"}};
  EXPECT_TRUE(check_kubernetes_policy(spec, {}));

  const auto refused = check_kubernetes_policy(spec, {.is_shared = true, .devices = {"rdma/hca"}});

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kRefused);
  ASSERT_EQ(refused.error().faults.size(), 1U);
  EXPECT_EQ(refused.error().faults[0].field, "kubernetes.devices.nvidia.com/mig-1g.10gb");
  EXPECT_TRUE(check_kubernetes_policy(
      spec, {.is_shared = true, .devices = {"rdma/hca", "nvidia.com/mig-1g.10gb"}}));
}

}  // namespace
namespace {

using Texts = std::vector<std::string>;

SlurmPolicy shared() {
  return {.is_shared = true,
          .accounts = {{"vision", "lab1"}, {"speech", "lab2"}},
          .default_account = "proj-%p",
          .job_accounts = {"common"},
          .job_reservations = {"course", "maint"}};
}

job::JobSpec spec_in_slurm(const std::string& project, const job::SlurmSpec& slurm) {
  job::JobSpec spec{.name = "train", .project = project};
  spec.slurm = slurm;
  return spec;
}

TEST(SlurmPolicy, TheOneUserOfAServerMayNameAll) {
  SlurmPolicy policy = shared();
  policy.is_shared = false;
  EXPECT_TRUE(
      check_slurm_policy(spec_in_slurm("vision", {.account = "lab2", .reservation = "r"}), policy));
}

struct AccountCase {
  const char* project;
  const char* account;
  bool is_allowed;
};

TEST(SlurmPolicy, OfASharedServerAJobMayNameItsProjectsAccountAndThoseForAll) {
  for (const AccountCase& each : {AccountCase{"vision", "", true},
                                  {"vision", "lab1", true},
                                  {"vision", "common", true},
                                  {"vision", "lab2", false},
                                  // The default is for projects that have no account of their own.
                                  {"vision", "proj-vision", false},
                                  {"audio", "proj-audio", true},
                                  {"audio", "proj-vision", false},
                                  {"audio", "proj-%p", false},
                                  {"vision", "LAB1", false},
                                  {"vision", "lab", false}}) {
    EXPECT_EQ(static_cast<bool>(check_slurm_policy(
                  spec_in_slurm(each.project, {.account = each.account}), shared())),
              each.is_allowed)
        << each.project << " " << each.account;
  }
}

TEST(SlurmPolicy, RefusesAListWithOneForbiddenEntry) {
  EXPECT_TRUE(
      check_slurm_policy(spec_in_slurm("vision", {.reservation = "maint,course"}), shared()));
  for (const char* list : {"course,root", "root,course", "course+", "cours"}) {
    EXPECT_FALSE(check_slurm_policy(spec_in_slurm("vision", {.reservation = list}), shared()))
        << list;
  }
}

// Slurm itself checks the rules that depend on the account.
TEST(SlurmPolicy, PartitionsQosAndFeaturesAreForSlurmToRefuse) {
  EXPECT_TRUE(check_slurm_policy(
      spec_in_slurm("vision", {.partition = "gpu", .qos = "high", .constraint = "a100"}),
      {.is_shared = true}));
}

TEST(SlurmPolicy, ReportsAllRefusedSettingsWithARemedy) {
  const auto refused = check_slurm_policy(
      spec_in_slurm("vision", {.account = "lab2", .reservation = "root,course,night"}), shared());

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kRefused);
  EXPECT_EQ(
      base::faults_of(refused),
      (Texts{"slurm.account the account 'lab2' is not allowed; leave it out to use the account "
             "of project 'vision', 'lab1'",
             "slurm.reservation the reservation 'root' is not allowed; leave it out",
             "slurm.reservation the reservation 'night' is not allowed; leave it out"}));
  EXPECT_NE(refused.error().advice.find("slurm.job_accounts"), std::string::npos);

  EXPECT_EQ(base::faults_of(check_slurm_policy(spec_in_slurm("vision", {.account = "lab2"}),
                                               {.is_shared = true})),
            Texts{"slurm.account the account 'lab2' is not allowed; project 'vision' has no "
                  "account; leave it out"});
}

TEST_F(Allocations, ContainersBesideTasksAreRefusedWhereNoPodsRun) {
  job::JobSpec spec = single("one", "default", 1);
  spec.image = "a:1";
  spec.kubernetes.containers = {{.name = "fetch", .image = "b:1"}};

  const auto refused = controller_->submit(spec, "ada");

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kRefused);
  EXPECT_EQ(
      refused.error().what,
      "job 'one' has the init container or sidecar 'fetch', and this server does not run pods");
}

TEST_F(Allocations, AnAccountThatAJobMayNotNameIsRefusedWhenItIsSubmitted) {
  controller_ = nullptr;
  controller_ = std::make_unique<Controller>(
      ControllerDependencies{
          .loop = loop_, .store = store_, .engine = engine_, .clock = clock_, .random = random_},
      SiteFacts{.user = "ada", .slurm = shared()});
  job::JobSpec spec = mpi("dist", "default", 2);
  spec.slurm.account = "lab2";

  const auto refused = controller_->submit(spec, "");

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kRefused);
  EXPECT_EQ(refused.error().faults.size(), 1U);
  spec.slurm.account = "proj-default";
  submit(spec);
  EXPECT_EQ(request("dist").slurm.account, "proj-default");
}

}  // namespace
}  // namespace muster::control
