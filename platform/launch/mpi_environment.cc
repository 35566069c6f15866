#include "launch/mpi_environment.h"

#include "launch/mpi_hosts.h"
#include "launch/mpirun_command.h"

namespace muster::launch {

namespace {

std::string hostfile(const MpiSite& site) {
  return site.folder + "/" + kHostfile;
}

/// The variables for Intel MPI only, without those that are set to other values.
Variables intel_environment(const MpiQuestion& question) {
  Variables variables;
  // Intel MPI ignores the numbers of ranks in a hostfile: by default, it fills the first host up to
  // the number of its CPUs. A launcher with fewer slots than a worker is last, and gets the
  // remaining ranks.
  variables["I_MPI_PERHOST"] = std::to_string(question.slots_per_worker);
  // By default, Intel MPI selects the fastest fabric that its library supports, and fails if the
  // task lacks that fabric. An image for a fabric sets its own provider.
  if (!question.set.contains("I_MPI_OFI_PROVIDER")) variables["FI_PROVIDER"] = "tcp";
  if (question.reach == Reach::kLoopback) variables["FI_TCP_IFACE"] = "lo";
  std::erase_if(variables, [&](const auto& entry) { return question.set.contains(entry.first); });
  return variables;
}

std::string ssh_arguments(const MpiSite& site) {
  return "-F " + site.folder + "/ssh/config";
}

}  // namespace

Variables open_mpi_environment(const MpiSite& site) {
  Variables variables;

  // Open MPI 5 reads PRTE_MCA_* and ignores ORTE's names: with only those set it runs every rank on
  // the launcher and exits 0. Both are set, and the rank census catches the rest.
  variables["OMPI_MCA_orte_default_hostfile"] = hostfile(site);
  variables["PRTE_MCA_prte_default_hostfile"] = hostfile(site);
  variables["OMPI_MCA_orte_keep_fqdn_hostnames"] = "1";
  variables["PRTE_MCA_prte_keep_fqdn_hostnames"] = "1";
  const std::string agent = site.remote_shell.empty() ? "ssh" : site.remote_shell;
  variables["OMPI_MCA_plm_rsh_agent"] = agent;
  variables["OMPI_MCA_plm_ssh_agent"] = agent;
  variables["PRTE_MCA_plm_ssh_agent"] = agent;
  if (site.remote_shell.empty()) {
    variables["OMPI_MCA_plm_rsh_args"] = ssh_arguments(site);
    variables["PRTE_MCA_plm_ssh_args"] = ssh_arguments(site);
  }
  if (!site.interfaces.empty()) {
    variables["OMPI_MCA_oob_tcp_if_include"] = site.interfaces;
    variables["OMPI_MCA_btl_tcp_if_include"] = site.interfaces;
    // PRRTE discards the loopback interface before it applies the list of allowed interfaces, and
    // fails.
    if (site.interfaces != kLoopback) variables["PRTE_MCA_prte_if_include"] = site.interfaces;
  }

  // The rank census and the ranks' own logs. Not orte_tag_output: Open MPI 4.1.4 loses lines with
  // it (of 6,000 that two ranks print fast, some 900), and scripts read what mpirun prints.
  variables["OMPI_MCA_orte_fork_agent"] = site.folder + "/rank";
  variables["PRTE_MCA_odls_base_exec_agent"] = site.folder + "/rank";
  return variables;
}

Variables rank_environment(const MpiSite& site, bool apart) {
  Variables variables;
  if (!site.interfaces.empty()) variables["OMPI_MCA_btl_tcp_if_include"] = site.interfaces;
  // The names for Open MPI 4 and 5; unknown names are ignored.
  if (apart) variables["OMPI_MCA_btl"] = "^vader,sm";
  return variables;
}

Variables hydra_environment(const MpiSite& site) {
  const std::string file = site.folder + "/" + kHydraHostfile;
  Variables variables{{"I_MPI_HYDRA_HOST_FILE", file},
                      {"HYDRA_HOST_FILE", file},
                      // Ranks have the environment of their own task, with its devices. Intel MPI
                      // has no such variable: it passes on the launcher's environment.
                      {"HYDRA_ENV", "none"}};
  if (site.remote_shell.empty()) {
    variables["I_MPI_HYDRA_BOOTSTRAP"] = "ssh";
    variables["I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS"] = ssh_arguments(site);
    variables["HYDRA_LAUNCHER"] = "ssh";
    variables["HYDRA_LAUNCHER_EXTRA_ARGS"] = ssh_arguments(site);
  } else {
    variables["I_MPI_HYDRA_BOOTSTRAP"] = "rsh";
    variables["I_MPI_HYDRA_BOOTSTRAP_EXEC"] = site.remote_shell;
    variables["HYDRA_LAUNCHER"] = "rsh";
    variables["HYDRA_LAUNCHER_EXEC"] = site.remote_shell;
  }
  return variables;
}

MpiChoice mpi_choice(const MpiQuestion& question) {
  // Command lines in documents use this name of the hostfile with every MPI.
  const std::map<std::string, std::string> hydra_hostfile{{kHostfile, kHydraHostfile}};
  return {.program = launcher_of(question.command).value_or("mpirun"),
          .variants = {{job::MpiKind::kOpenMpi, {}},
                       {job::MpiKind::kMpich, {.files = hydra_hostfile}},
                       {job::MpiKind::kIntel,
                        {.environment = intel_environment(question), .files = hydra_hostfile}}}};
}

}  // namespace muster::launch
