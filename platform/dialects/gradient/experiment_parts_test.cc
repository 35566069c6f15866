#include <gtest/gtest.h>

#include <algorithm>

#include "dialects/gradient/experiment.h"
#include "dialects/gradient/test_experiment.h"

namespace muster::dialects::gradient {

namespace {

Words with_more(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words create_single(const Words& more) {
  return with_more({"experiments", "create", "singlenode", "--container", "python:3",
                    "--machineType", "C3", "--command", "ls"},
                   more);
}

Words create_mpi(const Words& more) {
  return with_more(
      {"experiments", "create", "multinode", "--experimentType", "MPI", "--workerContainer", "w",
       "--workerCount", "2", "--workerMachineType", "C3", "--masterContainer", "nvcr.io/m",
       "--masterCount", "1", "--masterMachineType", "C3", "--masterCommand", "mpirun a"},
      more);
}

Words create_grpc(const Words& more) {
  return with_more({"experiments",
                    "create",
                    "multinode",
                    "--experimentType",
                    "GRPC",
                    "--workerContainer",
                    "w",
                    "--workerCount",
                    "2",
                    "--workerMachineType",
                    "C3",
                    "--workerCommand",
                    "train",
                    "--parameterServerContainer",
                    "p",
                    "--parameterServerMachineType",
                    "C3",
                    "--parameterServerCommand",
                    "serve",
                    "--parameterServerCount",
                    "1"},
                   more);
}

TEST(Containers, OfExperimentsAreWritable) {
  const job::JobSpec spec = accepted(create_single({})).spec;
  EXPECT_EQ(spec.container, job::ContainerSpec{.writable_root = true});
  EXPECT_TRUE(spec.replaces_entrypoint);
  EXPECT_EQ(spec.user, "");
}

TEST(Containers, EachRoleHasItsOwnUser) {
  EXPECT_EQ(accepted(create_single({"--containerUser", "1000"})).spec.user, "1000");
  const job::JobSpec several =
      accepted(create_mpi({"--workerContainerUser", "ada", "--masterContainerUser", "root"})).spec;
  EXPECT_EQ(several.user, "ada");
  EXPECT_EQ(several.leader.user, "root");
  const job::JobSpec cluster = accepted(create_grpc({"--workerContainerUser", "ada",
                                                     "--parameterServerContainerUser", "0:0"}))
                                   .spec;
  EXPECT_EQ(cluster.user, "ada");
  EXPECT_EQ(cluster.leader.user, "");  // the chief runs the same command as the workers
  EXPECT_EQ(cluster.parameter_server.user, "0:0");
  EXPECT_EQ(accepted(create_grpc({"--parameterServerRegistryContainerUser", "me"}))
                .spec.parameter_server.user,
            "me");
  EXPECT_EQ(read(create_mpi({"--masterContainerUser", "a b"})).fault_text(),
            "--masterContainerUser: 'a b' is neither USER nor USER:GROUP, each a name or a number "
            "of the image\n");
}

TEST(Containers, APasswordIsSentSeparatelyAndIsNotPartOfTheJob) {
  const Experiment experiment = accepted(
      create_mpi({"--workerRegistryUsername", "ada", "--workerRegistryPassword", "hush-hush",
                  "--workerRegistryUrl", "https://index.docker.io/v1/", "--masterRegistryUsername",
                  "$oauthtoken", "--masterRegistryPassword", "shh"}));

  EXPECT_EQ(experiment.spec.registry,
            (job::RegistryLogin{
                .server = "docker.io", .username = "ada", .secret = "REGISTRY_docker_io_ada"}));
  EXPECT_EQ(
      experiment.spec.leader.registry,
      (job::RegistryLogin{
          .server = {}, .username = "$oauthtoken", .secret = "REGISTRY_nvcr_io__oauthtoken"}));
  ASSERT_EQ(experiment.passwords.size(), 2U);
  EXPECT_EQ(experiment.passwords[0].secret, "REGISTRY_docker_io_ada");
  EXPECT_EQ(experiment.passwords[0].password, "hush-hush");
  EXPECT_EQ(experiment.passwords[1].password, "shh");
  for (const auto& [name, value] : experiment.spec.annotations) {
    EXPECT_EQ(value.find("hush-hush"), std::string::npos) << name;
    EXPECT_EQ(value.find("shh"), std::string::npos) << name;
  }
}

TEST(Containers, RolesOfOneAccountShareItsSecret) {
  const Words account{"--workerRegistryUsername", "ada",     "--workerRegistryPassword", "hush",
                      "--workerRegistryUrl",      "nvcr.io", "--masterRegistryUsername", "ada",
                      "--masterRegistryPassword"};
  EXPECT_EQ(accepted(create_mpi(with_more(account, {"hush"}))).passwords.size(), 1U);
  EXPECT_EQ(read(create_mpi(with_more(account, {"other"}))).fault_text(),
            "--masterRegistryPassword: differs from --workerRegistryPassword, for the same user\n");
}

TEST(Containers, ALoginRequiresAUserAndAPassword) {
  EXPECT_EQ(read(create_single({"--registryUsername", "ada"})).fault_text(),
            "--registryPassword: is missing; a registry needs both\n");
  EXPECT_EQ(read(create_single({"--registryPassword", "p"})).fault_text(),
            "--registryUsername: is missing; a registry needs both\n");
  const Experiment experiment = accepted(create_single({"--registryUrl", "nvcr.io"}));
  EXPECT_EQ(experiment.spec.registry, job::RegistryLogin());
  EXPECT_EQ(experiment.notes, Words{"--registryUrl has no effect without a user and a password: "
                                    "the name of the image contains the registry"});
  EXPECT_EQ(read(create_single({"--registryUsername", "a", "--registryPassword", "p",
                                "--registryUrl", "https://a b/"}))
                .fault_text(),
            "--registryUrl: 'a b' is not the name of a registry, as in "
            "registry.example.com:5000\n");
}

TEST(Containers, FlagsOfAMissingRoleHaveNoEffect) {
  const Experiment experiment = accepted(
      create_mpi({"--parameterServerContainerUser", "a", "--parameterServerRegistryUsername", "u",
                  "--parameterServerRegistryPassword", "p"}));

  EXPECT_TRUE(experiment.passwords.empty());
  EXPECT_EQ(experiment.spec.parameter_server, job::RoleSpec());
  ASSERT_EQ(experiment.notes.size(), 3U);
  EXPECT_EQ(
      experiment.notes.front(),
      "--parameterServerContainerUser has no effect: an MPI experiment has no parameter servers");
}

TEST(Containers, AnAddressIdentifiesARegistry) {
  const std::vector<std::pair<std::string, std::string>> table{
      {"https://index.docker.io/v1/", "docker.io"},
      {"registry-1.docker.io", "docker.io"},
      {"docker.io", "docker.io"},
      {"https://gcr.io", "gcr.io"},
      {"http://registry.example.com:5000/v2", "registry.example.com:5000"},
  };
  for (const auto& [url, registry] : table) EXPECT_EQ(registry_of_url(url), registry) << url;
}

}  // namespace

}  // namespace muster::dialects::gradient
