#include "launch/mpi_environment.h"

#include "launch/mpi_hosts.h"
#include "launch/mpirun_command.h"

namespace muster::launch {

namespace {

std::string hostfile(const MpiSite& site) {
  return site.folder + "/" + kHostfile;
}

/// Of Intel MPI alone; none that was set to something else.
Variables intel_environment(const MpiQuestion& question) {
  Variables variables;
  // It reads the hosts of a hostfile and ignores how many ranks each takes: left to itself it fills
  // the first to the number of its CPUs. A launcher that takes fewer than a worker, and last, gets
  // what is left.
  variables["I_MPI_PERHOST"] = std::to_string(question.slots_per_worker);
  // Left to itself it takes the fastest fabric that its library knows of, and gives up where the
  // task has none of that. An image for a fabric sets its own.
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
    // PRRTE forgets the loopback interface before it looks for those that it may use, and gives up.
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
  // Its names in Open MPI 4 and 5; a name that is not known does no harm.
  if (apart) variables["OMPI_MCA_btl"] = "^vader,sm";
  return variables;
}

Variables hydra_environment(const MpiSite& site) {
  const std::string file = site.folder + "/" + kHydraHostfile;
  Variables variables{{"I_MPI_HYDRA_HOST_FILE", file},
                      {"HYDRA_HOST_FILE", file},
                      // Ranks have the environment of the task that they are in, with its devices.
                      // Intel MPI has no such variable: it hands the launcher's own on.
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
  // A command line of the documents names the hostfile as it is called there, whatever MPI it is.
  const std::map<std::string, std::string> hydra_hostfile{{kHostfile, kHydraHostfile}};
  return {.program = launcher_of(question.command).value_or("mpirun"),
          .variants = {{job::MpiKind::kOpenMpi, {}},
                       {job::MpiKind::kMpich, {.files = hydra_hostfile}},
                       {job::MpiKind::kIntel,
                        {.environment = intel_environment(question), .files = hydra_hostfile}}}};
}

}  // namespace muster::launch
