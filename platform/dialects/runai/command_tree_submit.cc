#include "cli/command/command.h"
#include "dialects/runai/command_tree.h"

namespace muster::dialects::runai {

namespace {

cli::Flags name_flags() {
  return {
      {.name = "--name", .value = "NAME", .help = "name of the job (default: job-0, job-1 ...)"},
      {.name = "--job-name-prefix",
       .value = "PREFIX",
       .help = "name it PREFIX-0, or the next number that is free"},
      {.name = "--interactive",
       .help = "interactive job: within the quota, never evicted, no retries"},
      {.name = "--template", .value = "NAME", .help = "not supported; give its values"},
      {.name = "--dry-run", .help = "print the job as YAML; submit nothing", .hidden = true},
      {.name = "--user",
       .letter = "-u",
       .value = "USER",
       .help = "who is shown as its user",
       .hidden = true},
  };
}

cli::Flags program_flags() {
  return {
      {.name = "--image", .letter = "-i", .value = "IMAGE", .help = "the image that the job runs"},
      {.name = "--command",
       .value = "CMD",
       .help = "the words behind -- replace what the image runs; else they are its arguments",
       .value_optional = true},
      {.name = "--args", .value = "WORD", .help = "an argument of the command", .repeats = true},
      {.name = "--environment",
       .letter = "-e",
       .value = "NAME=VALUE",
       .help = "set a variable of the job",
       .repeats = true},
      {.name = "--working-dir",
       .value = "DIR",
       .help = "working folder of every task (default: this one)",
       .offer = cli::Offer::kFolders},
      {.name = "--git-sync",
       .value = "source=URL,...",
       .help = "bring in a repository: source, branch, rev, username, password, target (/code)"},
      {.name = "--attach",
       .help = "sit before the job once it runs: see, type, leave with ctrl-p ctrl-q"},
      {.name = "--stdin", .help = "the job reads the input of attached terminals"},
      {.name = "--tty", .letter = "-t", .help = "a terminal for the job"},
  };
}

cli::Flags image_flags() {
  return {
      {.name = "--image-pull-policy",
       .value = "POLICY",
       .help = "Always, IfNotPresent or Never",
       .choices = {"Always", "IfNotPresent", "Never"},
       .offer = cli::Offer::kChoices},
      {.name = "--always-pull-image", .help = "deprecated", .hidden = true},
      {.name = "--local-image", .help = "deprecated", .hidden = true},
  };
}

cli::Flags resource_flags_of_a_worker() {
  return {
      {.name = "--gpu",
       .letter = "-g",
       .value = "N",
       .help = "GPUs of the task, or of each worker; or a part of one: 0.5"},
      {.name = "--gpu-memory", .value = "SIZE", .help = "so much memory of one GPU: 5G"},
      {.name = "--mig", .value = "PROFILE", .help = "a MIG device; not supported"},
      {.name = "--mig-profile", .value = "PROFILE", .help = "the same", .hidden = true},
      {.name = "--cpu", .value = "N", .help = "CPUs that it claims: 2, 0.5, 500m"},
      {.name = "--memory", .value = "SIZE", .help = "memory that it claims: 4G, 512M"},
      {.name = "--cpu-limit", .value = "N", .help = "CPUs that it may use; claimed without --cpu"},
      {.name = "--memory-limit",
       .value = "SIZE",
       .help = "memory that it may use; claimed without --memory"},
      {.name = "--extended-resource",
       .value = "NAME=N",
       .help = "a resource of another kind",
       .repeats = true},
      {.name = "--large-shm", .help = "a large /dev/shm"},
  };
}

cli::Flags volume_flags() {
  return {
      {.name = "--volume",
       .letter = "-v",
       .value = "HOST:PATH[:ro]",
       .help = "a file or folder of the nodes, found at PATH",
       .repeats = true},
      {.name = "--volumes",
       .value = "HOST:PATH[:ro]",
       .help = "deprecated",
       .repeats = true,
       .hidden = true},
      {.name = "--pvc",
       .value = "NAME:PATH[:ro]",
       .help = "a folder of the project, kept when the job is gone; [CLASS]:SIZE:PATH is a new one",
       .repeats = true},
      {.name = "--pvc-exists",
       .value = "claimname=NAME,path=PATH",
       .help = "the same, of that name",
       .repeats = true},
      {.name = "--pvc-new",
       .value = "size=SIZE,path=PATH,...",
       .help = "a new one: claimname, storageclass, size, path, accessmode-*, ro, ephemeral",
       .repeats = true},
      {.name = "--mount-propagation", .help = "see what the host mounts later"},
      {.name = "--nfs-server", .value = "HOST", .help = "not supported; mount it on the nodes"},
      {.name = "--s3", .value = "bucket=,...", .help = "not supported", .repeats = true},
      {.name = "--configmap-volume",
       .value = "name=,path=",
       .help = "not supported",
       .repeats = true},
  };
}

cli::Flags lifecycle_flags() {
  return {
      {.name = "--backoff-limit",
       .value = "N",
       .help = "how often a failed job may start again (default: 6; 0 with --interactive)"},
      {.name = "--backoffLimit", .value = "N", .help = "deprecated", .hidden = true},
      {.name = "--preemptible", .help = "with --interactive: above the quota, may be evicted"},
      {.name = "--ttl-after-finish",
       .value = "TIME",
       .help = "remove it so long after its end, as in 1h30m"},
      {.name = "--auto-deletion-time-after-completion",
       .value = "TIME",
       .help = "the same",
       .hidden = true},
  };
}

cli::Flags network_flags() {
  return {
      {.name = "--host-ipc", .help = "share the host's IPC"},
      {.name = "--host-network", .help = "share the host's network"},
      {.name = "--port", .value = "PORT", .help = "a port of a service", .repeats = true},
      {.name = "--address", .value = "ADDRESS", .help = "an address of a service"},
      {.name = "--service-type",
       .letter = "-s",
       .value = "TYPE",
       .help = "portforward, loadbalancer, nodeport or ingress",
       .choices = {"portforward", "loadbalancer", "nodeport", "ingress"},
       .offer = cli::Offer::kChoices},
  };
}

cli::Flags access_flags() {
  return {
      {.name = "--run-as-user", .help = "run as the caller's account"},
      {.name = "--create-home-dir", .help = "an empty home folder, /home/runai-home"},
      {.name = "--prevent-privilege-escalation", .help = "no more rights than it starts with"},
      {.name = "--allow-privilege-escalation", .help = "more rights than it starts with"},
      {.name = "--add-capability", .value = "NAME", .help = "a right of root's", .repeats = true},
  };
}

cli::Flags placement_flags() {
  return {
      {.name = "--node-type", .value = "TYPE", .help = "not supported; see --node-pools"},
      {.name = "--node-pools", .value = "A,B", .help = "node pools, tried in this order"},
      {.name = "--toleration",
       .value = "operator=,...",
       .help = "operator, key, value, effect, seconds",
       .repeats = true},
      {.name = "--preferred-pod-topology-key",
       .value = "KEY",
       .help = "all tasks in one domain, such as a rack, if possible"},
      {.name = "--required-pod-topology-key", .value = "KEY", .help = "or wait until there is"},
      {.name = "--label",
       .letter = "-l",
       .value = "NAME=VALUE",
       .help = "to select jobs by",
       .repeats = true},
      {.name = "--annotation",
       .letter = "-a",
       .value = "NAME=VALUE",
       .help = "kept with the job",
       .repeats = true},
  };
}

/// The flags of every kind of job.
cli::Flags shared_flags() {
  return name_flags() + program_flags() + image_flags() + resource_flags_of_a_worker() +
         volume_flags() + lifecycle_flags() + network_flags() + access_flags() + placement_flags();
}

cli::Flags one_task_flags() {
  return {
      {.name = "--inference", .help = "others depend on it: within the quota, before all others"},
      {.name = "--jupyter", .help = "a notebook; not supported"},
      {.name = "--elastic", .help = "grow and shrink with the room there is"},
      {.name = "--completions", .value = "N", .help = "only 1 is served here"},
      {.name = "--parallelism", .value = "N", .help = "only 1 is served here"},
  };
}

cli::Flags distributed_flags() {
  return {
      {.name = "--workers",
       .value = "N",
       .help = "how many workers, beside the master (default: 1)"},
      {.name = "--clean-pod-policy",
       .value = "POLICY",
       .help = "Running, All or None",
       .choices = {"Running", "All", "None"},
       .offer = cli::Offer::kChoices},
      {.name = "--master-args",
       .value = "WORDS",
       .help = "arguments of the master, in the place of the job's",
       .repeats = true},
      {.name = "--master-environment",
       .value = "NAME=VALUE",
       .help = "set a variable of the master",
       .repeats = true},
      {.name = "--master-gpu", .value = "N", .help = "GPUs of the master"},
      {.name = "--master-extended-resource",
       .value = "NAME=N",
       .help = "a resource of another kind",
       .repeats = true},
      {.name = "--master-no-pvcs", .help = "the master goes without the volumes of --pvc"},
  };
}

cli::Command submitting(std::string name, std::string help, const cli::Flags& own,
                        std::string example) {
  return {.name = std::move(name),
          .help = std::move(help),
          .positionals = {.name = "NAME", .most = 1},
          .takes_program = true,
          .flags = own + shared_flags(),
          .example = std::move(example)};
}

cli::Command submit_mpi() {
  const cli::Flags own = {
      {.name = "--processes", .value = "N", .help = "how many workers (default: 1)"},
      {.name = "--num-processes", .value = "N", .help = "deprecated", .hidden = true}};
  cli::Command command = submitting("submit-mpi", "a launcher, and workers that it reaches", own,
                                    "runai submit-mpi dist --processes=2 -g 1 -i IMAGE");
  command.alias = "mpi";
  return command;
}

cli::Command submit_distributed() {
  const cli::Flags slots = {
      {.name = "--slots-per-worker", .value = "N", .help = "ranks in each worker (default: 1)"}};
  const cli::Flags replicas = {
      {.name = "--min-replicas",
       .value = "N",
       .help = "run with so many workers at the least (default: --workers)"},
      {.name = "--max-replicas",
       .value = "N",
       .help = "with so many at the most (default: --workers)"}};
  return {
      .name = "submit-dist",
      .help = "a job of several tasks, by the framework it is written for",
      .commands = {
          submitting("mpi", "a launcher, and workers that it reaches", distributed_flags() + slots,
                     "runai submit-dist mpi dist --workers=2 -g 1 -i IMAGE"),
          submitting("pytorch", "a master, and workers that meet there",
                     distributed_flags() + replicas,
                     "runai submit-dist pytorch dist --workers=2 -g 1 -i IMAGE"),
          submitting("tf", "a TensorFlow cluster: a chief, and workers", distributed_flags(),
                     "runai submit-dist tf dist --workers=2 -g 1 -i IMAGE"),
      }};
}

}  // namespace

std::vector<cli::Command> submit_commands() {
  return {submitting("submit", "a job of one task", one_task_flags(),
                     "runai submit train -g 1 -i IMAGE"),
          submit_mpi(), submit_distributed()};
}

}  // namespace muster::dialects::runai
