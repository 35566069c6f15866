// The keys of a server's configuration for jobs on Slurm.
#include <utility>

#include "config/server_values.h"

namespace muster::config {

namespace {

/// Requests to Slurm.
ServerKeys request_keys() {
  return {
      key({.name = "slurm.rest",
           .flag = "--slurm-rest",
           .type = "URL",
           .fallback = "Slurm's programs: sbatch, squeue",
           .help = "address of slurmrestd: unix:///SOCKET or http[s]://HOST:PORT; auto searches "
                   "its usual sockets"},
          &ServeOptions::slurm_rest, read_rest_url),
      key({.name = "slurm.rest_user",
           .flag = "--slurm-rest-user",
           .type = "user",
           .fallback = "the server's user",
           .help = "user for slurmrestd"},
          &ServeOptions::slurm_rest_user, read_slurm_name),
      key({.name = "slurm.token_command",
           .type = "list",
           .fallback = "scontrol token",
           .help = "command that prints a token for slurmrestd; run whenever a token is needed"},
          &ServeOptions::slurm_token_command, read_command),
  };
}

/// The addresses and folders that the server and the nodes share.
ServerKeys address_keys() {
  return {
      key({.name = "slurm.callback",
           .flag = "--slurm-callback",
           .type = "HOST,...:PORT",
           .fallback = "this machine's addresses, and a port that is chosen once",
           .help = "addresses at which nodes connect to the server, such as head,10.0.0.1:7445; "
                   ":PORT sets only the port"},
          &ServeOptions::slurm_callback, read_callback),
      key({.name = "slurm.callback_bind",
           .flag = "--slurm-callback-bind",
           .type = "address",
           .fallback = "0.0.0.0",
           .help = "local address for these connections"},
          &ServeOptions::slurm_callback_bind, read_bind_address),
      key({.name = "slurm.shared",
           .flag = "--slurm-shared",
           .type = "auto, yes or no",
           .fallback = "auto: each node checks",
           .help = "whether nodes share the folder of the jobs, by NFS for example",
           .choices = choices_of<NodeSharing>()},
          &ServeOptions::slurm_shared, read_sharing),
      key({.name = "slurm.node_folder",
           .flag = "--slurm-node-folder",
           .type = "folder",
           .fallback = "a folder in /tmp",
           .help = "folder for tasks on nodes that do not share it"},
          &ServeOptions::slurm_node_folder, read_node_path),
      key({.name = "slurm.programs",
           .flag = "--slurm-programs",
           .type = "folder",
           .fallback = "the folder on this machine",
           .help = "folder of muster-node, muster-shim and muster-rsh on the nodes"},
          &ServeOptions::slurm_programs, read_node_path),
      key({.name = "slurm.tasks_per_node",
           .flag = "--slurm-tasks-per-node",
           .type = "count",
           .fallback = "1",
           .help = "maximum number of tasks of a job on one node"},
          &ServeOptions::slurm_tasks_per_node, read_positive),
  };
}

/// Options for all Slurm jobs.
ServerKeys job_keys() {
  return {
      key({.name = "slurm.accounts",
           .flag = "--slurm-accounts",
           .type = "PROJECT=ACCOUNT",
           .fallback = "none",
           .help = "Slurm account of each project",
           .repeats = true},
          &ServeOptions::slurm_accounts, read_accounts),
      key({.name = "slurm.default_account",
           .flag = "--slurm-default-account",
           .type = "account",
           .fallback = "Slurm's default for the user",
           .help = "account of the other projects; %p is replaced by the project's name"},
          &ServeOptions::slurm_default_account, read_default_account),
      key({.name = "slurm.job_accounts",
           .flag = "--slurm-job-accounts",
           .type = "names",
           .fallback = "any; only the project's own on a server with listen",
           .help = "accounts that jobs may name (--slurm-account); the server's user may use those "
                   "of all projects"},
          &ServeOptions::slurm_job_accounts, read_slurm_names),
      key({.name = "slurm.job_reservations",
           .flag = "--slurm-job-reservations",
           .type = "names",
           .fallback = "any; none on a server with listen",
           .help = "reservations that jobs may name (--slurm-reservation)"},
          &ServeOptions::slurm_job_reservations, read_slurm_names),
      key({.name = "slurm.qos",
           .flag = "--slurm-qos",
           .type = "QOS",
           .fallback = "Slurm's default for the account",
           .help = "default QOS of jobs"},
          &ServeOptions::slurm_qos, read_slurm_name),
      key({.name = "slurm.options",
           .type = "list",
           .fallback = "none",
           .help = "additional options of sbatch, such as --exclude=n7"},
          &ServeOptions::slurm_options, read_sbatch_options),
  };
}

}  // namespace

ServerKeys slurm_server_keys() {
  ServerKeys keys;
  for (ServerKeys part : {request_keys(), address_keys(), job_keys()}) {
    for (ServerKey& each : part) {
      each.engine = "slurm";
      keys.push_back(std::move(each));
    }
  }
  return keys;
}

}  // namespace muster::config
