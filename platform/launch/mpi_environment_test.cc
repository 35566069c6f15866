#include "launch/mpi_environment.h"

#include <gtest/gtest.h>

namespace muster::launch {
namespace {

using job::MpiKind;

TEST(OpenMpiEnvironment, DirectsOpenMpi4And5ToTheHostfileAndTheKeys) {
  EXPECT_EQ(open_mpi_environment({.folder = "/generated", .interfaces = "lo"}),
            (Variables{{"OMPI_MCA_btl_tcp_if_include", "lo"},
                       {"OMPI_MCA_oob_tcp_if_include", "lo"},
                       {"OMPI_MCA_orte_default_hostfile", "/generated/hostfile"},
                       {"OMPI_MCA_orte_fork_agent", "/generated/rank"},
                       {"OMPI_MCA_orte_keep_fqdn_hostnames", "1"},
                       {"OMPI_MCA_plm_rsh_agent", "ssh"},
                       {"OMPI_MCA_plm_rsh_args", "-F /generated/ssh/config"},
                       {"OMPI_MCA_plm_ssh_agent", "ssh"},
                       {"PRTE_MCA_odls_base_exec_agent", "/generated/rank"},
                       {"PRTE_MCA_plm_ssh_agent", "ssh"},
                       {"PRTE_MCA_plm_ssh_args", "-F /generated/ssh/config"},
                       {"PRTE_MCA_prte_default_hostfile", "/generated/hostfile"},
                       {"PRTE_MCA_prte_keep_fqdn_hostnames", "1"}}));
}

TEST(OpenMpiEnvironment, DirectsBothToMustersRemoteShellAndLeavesTheInterfacesToThem) {
  EXPECT_EQ(
      open_mpi_environment({.folder = "/generated", .remote_shell = "/muster/bin/muster-rsh"}),
      (Variables{{"OMPI_MCA_orte_default_hostfile", "/generated/hostfile"},
                 {"OMPI_MCA_orte_fork_agent", "/generated/rank"},
                 {"OMPI_MCA_orte_keep_fqdn_hostnames", "1"},
                 {"OMPI_MCA_plm_rsh_agent", "/muster/bin/muster-rsh"},
                 {"OMPI_MCA_plm_ssh_agent", "/muster/bin/muster-rsh"},
                 {"PRTE_MCA_odls_base_exec_agent", "/generated/rank"},
                 {"PRTE_MCA_plm_ssh_agent", "/muster/bin/muster-rsh"},
                 {"PRTE_MCA_prte_default_hostfile", "/generated/hostfile"},
                 {"PRTE_MCA_prte_keep_fqdn_hostnames", "1"}}));
}

TEST(OpenMpiEnvironment, RestrictsBothToTheNetworkOfTheirHosts) {
  const Variables variables =
      open_mpi_environment({.folder = "/generated", .interfaces = "10.9.0.0/30"});

  for (const char* name :
       {"OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include", "PRTE_MCA_prte_if_include"}) {
    EXPECT_EQ(variables.at(name), "10.9.0.0/30") << name;
  }
}

TEST(HydraEnvironment, DirectsIntelMpiAndMpichToTheHostfileAndTheKeys) {
  EXPECT_EQ(hydra_environment({.folder = "/generated"}),
            (Variables{{"HYDRA_ENV", "none"},
                       {"HYDRA_HOST_FILE", "/generated/hostfile.intel"},
                       {"HYDRA_LAUNCHER", "ssh"},
                       {"HYDRA_LAUNCHER_EXTRA_ARGS", "-F /generated/ssh/config"},
                       {"I_MPI_HYDRA_BOOTSTRAP", "ssh"},
                       {"I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", "-F /generated/ssh/config"},
                       {"I_MPI_HYDRA_HOST_FILE", "/generated/hostfile.intel"}}));
}

TEST(HydraEnvironment, DirectsBothToMustersRemoteShell) {
  EXPECT_EQ(hydra_environment({.folder = "/generated", .remote_shell = "/muster/bin/muster-rsh"}),
            (Variables{{"HYDRA_ENV", "none"},
                       {"HYDRA_HOST_FILE", "/generated/hostfile.intel"},
                       {"HYDRA_LAUNCHER", "rsh"},
                       {"HYDRA_LAUNCHER_EXEC", "/muster/bin/muster-rsh"},
                       {"I_MPI_HYDRA_BOOTSTRAP", "rsh"},
                       {"I_MPI_HYDRA_BOOTSTRAP_EXEC", "/muster/bin/muster-rsh"},
                       {"I_MPI_HYDRA_HOST_FILE", "/generated/hostfile.intel"}}));
}

TEST(MpiChoice, GivesHydraItsHostfileFormatUnderTheCommandsName) {
  const MpiChoice choice = mpi_choice({.command = {"mpirun", "train"}, .reach = Reach::kNames});

  EXPECT_EQ(choice.program, "mpirun");
  EXPECT_EQ(choice.variants.at(MpiKind::kOpenMpi), MpiChoice::Variant());
  const std::map<std::string, std::string> files{{"hostfile", "hostfile.intel"}};
  EXPECT_EQ(choice.variants.at(MpiKind::kMpich), (MpiChoice::Variant{.files = files}));
  EXPECT_EQ(choice.variants.at(MpiKind::kIntel),
            (MpiChoice::Variant{.environment = {{"FI_PROVIDER", "tcp"}, {"I_MPI_PERHOST", "1"}},
                                .files = files}));
}

/// The variables that only Intel MPI gets.
Variables intel(const MpiQuestion& question) {
  return mpi_choice(question).variants.at(MpiKind::kIntel).environment;
}

TEST(MpiChoice, KeepsIntelMpiOnTheMachineIfAllTasksAreThere) {
  EXPECT_EQ(intel({.reach = Reach::kLoopback, .slots_per_worker = 4}),
            (Variables{{"FI_PROVIDER", "tcp"}, {"FI_TCP_IFACE", "lo"}, {"I_MPI_PERHOST", "4"}}));
}

TEST(MpiChoice, KeepsTheUsersChoiceForIntelMpi) {
  const Variables perhost{{"I_MPI_PERHOST", "1"}};

  EXPECT_EQ(intel({.set = {{"FI_PROVIDER", "psm3"}}, .reach = Reach::kNames}), perhost);
  EXPECT_EQ(intel({.set = {{"I_MPI_OFI_PROVIDER", "psm3"}}, .reach = Reach::kNames}), perhost);
  EXPECT_EQ(intel({.set = {{"I_MPI_PERHOST", "2"}}, .reach = Reach::kNames}),
            (Variables{{"FI_PROVIDER", "tcp"}}));
}

TEST(MpiChoice, AsksTheLauncherOfTheCommand) {
  EXPECT_EQ(mpi_choice({.command = {"sh", "-c", "exec mpiexec.hydra -np 2 train"}}).program,
            "mpiexec.hydra");
  EXPECT_EQ(mpi_choice({.command = {"python", "train.py"}}).program, "mpirun");
}

}  // namespace
}  // namespace muster::launch
