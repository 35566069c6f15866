#include "launch/mpi_environment.h"

namespace muster::launch {

std::map<std::string, std::string> open_mpi_environment(const std::string& folder) {
  const std::string hostfile = folder + "/hostfile";
  const std::string ssh_arguments = "-F " + folder + "/ssh/config";
  std::map<std::string, std::string> variables;

  // Open MPI 5 reads PRTE_MCA_* and ignores ORTE's names: with only those set it runs every rank on
  // the launcher and exits 0. Both are set, and the rank census catches the rest.
  variables["OMPI_MCA_orte_default_hostfile"] = hostfile;
  variables["PRTE_MCA_prte_default_hostfile"] = hostfile;
  variables["OMPI_MCA_orte_keep_fqdn_hostnames"] = "1";
  variables["PRTE_MCA_prte_keep_fqdn_hostnames"] = "1";
  variables["OMPI_MCA_plm_rsh_agent"] = "ssh";
  variables["PRTE_MCA_plm_ssh_agent"] = "ssh";
  variables["OMPI_MCA_plm_rsh_args"] = ssh_arguments;
  variables["PRTE_MCA_plm_ssh_args"] = ssh_arguments;

  // All tasks are on this machine, and the loopback interface is the one that outsiders cannot
  // reach.
  variables["OMPI_MCA_oob_tcp_if_include"] = "lo";
  variables["OMPI_MCA_btl_tcp_if_include"] = "lo";
  variables["PRTE_MCA_prte_if_include"] = "lo";

  // The rank census and the ranks' own logs. Not orte_tag_output: Open MPI 4.1.4 loses lines with
  // it (of 6,000 that two ranks print fast, some 900), and scripts read what mpirun prints.
  variables["OMPI_MCA_orte_fork_agent"] = folder + "/rank";
  return variables;
}

std::map<std::string, std::string> hydra_environment(const std::string& folder) {
  const std::string hostfile = folder + "/hostfile.intel";
  const std::string ssh_arguments = "-F " + folder + "/ssh/config";
  return {{"I_MPI_HYDRA_HOST_FILE", hostfile},
          {"I_MPI_HYDRA_BOOTSTRAP", "ssh"},
          {"I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", ssh_arguments},
          {"HYDRA_HOST_FILE", hostfile},
          {"HYDRA_LAUNCHER", "ssh"},
          // Ranks have the environment of the task that they are in, with its devices.
          {"HYDRA_ENV", "none"},
          {"HYDRA_LAUNCHER_EXTRA_ARGS", ssh_arguments}};
}

}  // namespace muster::launch
