// The keys of a server's configuration that say how it runs jobs on Slurm.
#include <utility>

#include "config/server_values.h"

namespace muster::config {

namespace {

/// How it asks Slurm.
ServerKeys asking() {
  return {
      key({.name = "slurm.rest",
           .flag = "--slurm-rest",
           .type = "URL",
           .fallback = "Slurm is asked by its programs: sbatch, squeue",
           .help =
               "where slurmrestd answers: unix:///SOCKET or http[s]://HOST:PORT; auto looks for "
               "its usual sockets"},
          &ServeOptions::slurm_rest, read_rest_url),
      key({.name = "slurm.rest_user",
           .flag = "--slurm-rest-user",
           .type = "user",
           .fallback = "who the server runs as",
           .help = "whom slurmrestd is asked as"},
          &ServeOptions::slurm_rest_user, read_slurm_name),
      key({.name = "slurm.token_command",
           .type = "list",
           .fallback = "scontrol token",
           .help = "a program and its arguments that prints a token for slurmrestd, run "
                   "whenever one is needed"},
          &ServeOptions::slurm_token_command, read_command),
  };
}

/// How the server and the nodes find each other, and each other's files.
ServerKeys meeting() {
  return {
      key({.name = "slurm.callback",
           .flag = "--slurm-callback",
           .type = "HOST,...:PORT",
           .fallback = "this machine's own addresses, and a port that is chosen once",
           .help = "where nodes call the server back, as in head,10.0.0.1:7445; :PORT alone "
                   "chooses the port"},
          &ServeOptions::slurm_callback, read_callback),
      key({.name = "slurm.callback_bind",
           .flag = "--slurm-callback-bind",
           .type = "address",
           .fallback = "0.0.0.0",
           .help = "the address of this machine that it listens on for that"},
          &ServeOptions::slurm_callback_bind, read_bind_address),
      key({.name = "slurm.shared",
           .flag = "--slurm-shared",
           .type = "how",
           .fallback = "auto: each node looks",
           .help = "whether nodes see the folder of the jobs, by NFS or the like",
           .choices = {"auto", "yes", "no"}},
          &ServeOptions::slurm_shared, read_sharing),
      key({.name = "slurm.node_folder",
           .flag = "--slurm-node-folder",
           .type = "folder",
           .fallback = "one in /tmp",
           .help = "where nodes that do not see it keep what their tasks need"},
          &ServeOptions::slurm_node_folder, read_node_path),
      key({.name = "slurm.programs",
           .flag = "--slurm-programs",
           .type = "folder",
           .fallback = "where they are here",
           .help = "where nodes find muster-node, muster-shim and muster-rsh"},
          &ServeOptions::slurm_programs, read_node_path),
      key({.name = "slurm.tasks_per_node",
           .flag = "--slurm-tasks-per-node",
           .type = "count",
           .fallback = "1",
           .help = "how many tasks of a job may share a node"},
          &ServeOptions::slurm_tasks_per_node, read_positive),
  };
}

/// What is said to Slurm of all jobs.
ServerKeys saying() {
  return {
      key({.name = "slurm.accounts",
           .flag = "--slurm-accounts",
           .type = "PROJECT=ACCOUNT",
           .fallback = "none",
           .help = "the account that the jobs of a project are charged to",
           .repeats = true},
          &ServeOptions::slurm_accounts, read_accounts),
      key({.name = "slurm.default_account",
           .flag = "--slurm-default-account",
           .type = "account",
           .fallback = "Slurm's own for the user",
           .help = "that of the other projects; %p in it stands for the project's name"},
          &ServeOptions::slurm_default_account, read_default_account),
      key({.name = "slurm.job_accounts",
           .flag = "--slurm-job-accounts",
           .type = "names",
           .fallback = "any; none beside the project's own where it listens",
           .help = "which accounts jobs may name (--slurm-account): the server's user may use "
                   "those of all projects"},
          &ServeOptions::slurm_job_accounts, read_slurm_names),
      key({.name = "slurm.job_reservations",
           .flag = "--slurm-job-reservations",
           .type = "names",
           .fallback = "any; none where it listens",
           .help = "which reservations jobs may name (--slurm-reservation)"},
          &ServeOptions::slurm_job_reservations, read_slurm_names),
      key({.name = "slurm.qos",
           .flag = "--slurm-qos",
           .type = "QOS",
           .fallback = "Slurm's own for the account",
           .help = "the QOS of jobs that name none"},
          &ServeOptions::slurm_qos, read_slurm_name),
      key({.name = "slurm.options",
           .type = "list",
           .fallback = "none",
           .help = "further options of sbatch for every job, as in --exclude=n7"},
          &ServeOptions::slurm_options, read_sbatch_options),
  };
}

}  // namespace

ServerKeys slurm_server_keys() {
  ServerKeys keys;
  for (ServerKeys part : {asking(), meeting(), saying()}) {
    for (ServerKey& each : part) {
      each.engine = "slurm";
      keys.push_back(std::move(each));
    }
  }
  return keys;
}

}  // namespace muster::config
