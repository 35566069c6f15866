#include "cli/command/command.h"
#include "dialects/runai/command_tree.h"

namespace muster::dialects::runai {

namespace {

cli::Flags name_flags() {
  return {
      {.name = "--name", .value = "NAME", .help = "name of the job (default: job-0, job-1 ...)"},
      {.name = "--job-name-prefix",
       .value = "PREFIX",
       .help = "name the job PREFIX-0, or with the next unused number"},
      {.name = "--interactive",
       .help = "interactive job: within the quota, never evicted, no retries"},
      {.name = "--template", .value = "NAME", .help = "not supported; give its values"},
      {.name = "--dry-run", .help = "print the job as YAML; submit nothing"},
      {.name = "--user", .letter = "-u", .value = "USER", .help = "user shown for the job"},
  };
}

cli::Flags program_flags() {
  return {
      {.name = "--image", .letter = "-i", .value = "IMAGE", .help = "image of the job"},
      {.name = "--command",
       .value = "CMD",
       .help = "the words after -- replace the image's command; otherwise they are its arguments",
       .value_optional = true},
      {.name = "--args", .value = "WORD", .help = "argument of the command", .repeats = true},
      {.name = "--environment",
       .letter = "-e",
       .value = "NAME=VALUE",
       .help = "set an environment variable of the job",
       .repeats = true},
      {.name = "--working-dir",
       .value = "DIR",
       .help = "working folder of every task (default: the current folder)",
       .offer = cli::Offer::kFolders},
      {.name = "--git-sync",
       .value = "source=URL,...",
       .help = "clone a git repository: source, branch, rev, username, password, target (/code)"},
      {.name = "--attach",
       .help =
           "attach to the job when it runs: see its output, type input; ctrl-p ctrl-q detaches"},
      {.name = "--stdin", .help = "the job reads the input of attached terminals"},
      {.name = "--tty", .letter = "-t", .help = "allocate a terminal for the job"},
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
       .help = "GPUs of the task, or of each worker; or a fraction of one: 0.5"},
      {.name = "--gpu-memory", .value = "SIZE", .help = "GPU memory, as a fraction of one GPU: 5G"},
      {.name = "--mig", .value = "PROFILE", .help = "MIG device; not supported"},
      {.name = "--mig-profile", .value = "PROFILE", .help = "the same", .hidden = true},
      {.name = "--cpu", .value = "N", .help = "requested CPUs: 2, 0.5, 500m"},
      {.name = "--memory", .value = "SIZE", .help = "requested memory: 4G, 512M"},
      {.name = "--cpu-limit",
       .value = "N",
       .help = "CPU limit; also the request if --cpu is not given"},
      {.name = "--memory-limit",
       .value = "SIZE",
       .help = "memory limit; also the request if --memory is not given"},
      {.name = "--extended-resource",
       .value = "NAME=N",
       .help = "another resource, only on Kubernetes: rdma/hca=1",
       .repeats = true},
      {.name = "--large-shm", .help = "a large /dev/shm"},
  };
}

cli::Flags volume_flags() {
  return {
      {.name = "--volume",
       .letter = "-v",
       .value = "HOST:PATH[:ro]",
       .help = "mount a file or folder of the nodes at PATH",
       .repeats = true},
      {.name = "--volumes",
       .value = "HOST:PATH[:ro]",
       .help = "deprecated",
       .repeats = true,
       .hidden = true},
      {.name = "--pvc",
       .value = "NAME:PATH[:ro]",
       .help =
           "mount a folder of the project, which outlives the job, or on Kubernetes an existing "
           "claim; [CLASS]:SIZE:PATH creates a folder",
       .repeats = true},
      {.name = "--pvc-exists",
       .value = "claimname=NAME,path=PATH",
       .help = "mount an existing claim on Kubernetes; elsewhere the project's folder of this name",
       .repeats = true},
      {.name = "--existing-pvc",
       .value = "claimname=NAME,path=PATH",
       .help = "deprecated",
       .repeats = true,
       .hidden = true},
      {.name = "--pvc-new",
       .value = "size=SIZE,path=PATH,...",
       .help =
           "mount a new folder: claimname, storageclass, size, path, accessmode-*, ro, ephemeral",
       .repeats = true},
      {.name = "--new-pvc",
       .value = "size=SIZE,path=PATH,...",
       .help = "deprecated",
       .repeats = true,
       .hidden = true},
      {.name = "--mount-propagation", .help = "show file systems that the host mounts later"},
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
       .help = "number of retries after a failure (default: 6; 0 with --interactive)"},
      {.name = "--backoffLimit", .value = "N", .help = "deprecated", .hidden = true},
      {.name = "--preemptible",
       .help =
           "with --interactive or --inference: the job may exceed the quota, and may be evicted"},
      {.name = "--ttl-after-finish",
       .value = "TIME",
       .help = "delete the job this long after its end, as in 1h30m"},
      {.name = "--auto-deletion-time-after-completion",
       .value = "TIME",
       .help = "the same",
       .hidden = true},
  };
}

cli::Flags network_flags() {
  return {
      {.name = "--host-ipc", .help = "share the host's IPC namespace"},
      {.name = "--host-network", .help = "share the host's network"},
      {.name = "--port", .value = "PORT", .help = "port of a service", .repeats = true},
      {.name = "--address", .value = "ADDRESS", .help = "address of a service"},
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
      {.name = "--run-as-user", .help = "run with your user and group id"},
      {.name = "--run-as-uid", .value = "UID", .help = "run with this user id"},
      {.name = "--run-as-gid", .value = "GID", .help = "with --run-as-uid: and this group id"},
      {.name = "--create-home-dir", .help = "create an empty home folder, /home/runai-home"},
      {.name = "--prevent-privilege-escalation", .help = "programs cannot gain privileges"},
      {.name = "--allow-privilege-escalation", .help = "programs may gain privileges"},
      {.name = "--add-capability",
       .value = "NAME",
       .help = "Linux capability to add",
       .repeats = true},
  };
}

cli::Flags placement_flags() {
  return {
      {.name = "--node-type", .value = "TYPE", .help = "not supported; see --node-pools"},
      {.name = "--node-pools", .value = "A,B", .help = "node pools, tried in this order"},
      {.name = "--toleration",
       .value = "operator=,...",
       .help = "taints of nodes, only on Kubernetes: operator, key, value, effect, seconds",
       .repeats = true},
      {.name = "--preferred-pod-topology-key",
       .value = "KEY",
       .help = "place all tasks in one topology domain, such as a rack, if possible"},
      {.name = "--required-pod-topology-key",
       .value = "KEY",
       .help = "place all tasks in one topology domain, and wait until there is room"},
      {.name = "--label",
       .letter = "-l",
       .value = "NAME=VALUE",
       .help = "label to select the job by",
       .repeats = true},
      {.name = "--annotation",
       .letter = "-a",
       .value = "NAME=VALUE",
       .help = "annotation, stored with the job",
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
      {.name = "--inference",
       .help = "users depend on the job: it has the highest priority, within the quota"},
      {.name = "--jupyter", .help = "Jupyter notebook; not supported"},
      {.name = "--elastic", .help = "no effect: the job keeps the GPUs that it requests"},
      {.name = "--completions", .value = "N", .help = "only 1 is supported"},
      {.name = "--parallelism", .value = "N", .help = "only 1 is supported"},
  };
}

cli::Flags distributed_flags() {
  return {
      {.name = "--workers",
       .value = "N",
       .help = "number of workers besides the master (default: 1)"},
      {.name = "--clean-pod-policy",
       .value = "POLICY",
       .help = "Running, All or None",
       .choices = {"Running", "All", "None"},
       .offer = cli::Offer::kChoices},
      {.name = "--master-args",
       .value = "WORDS",
       .help = "arguments of the master, instead of the job's",
       .repeats = true},
      {.name = "--master-environment",
       .value = "NAME=VALUE",
       .help = "set an environment variable of the master",
       .repeats = true},
      {.name = "--master-gpu", .value = "N", .help = "GPUs of the master"},
      {.name = "--master-extended-resource",
       .value = "NAME=N",
       .help = "another resource; has no effect",
       .repeats = true},
      {.name = "--master-no-pvcs", .help = "do not mount the volumes of --pvc in the master"},
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
      {.name = "--processes", .value = "N", .help = "number of workers (default: 1)"},
      {.name = "--num-processes", .value = "N", .help = "deprecated", .hidden = true}};
  cli::Command command = submitting("submit-mpi", "submit an MPI job: a launcher and workers", own,
                                    "runai submit-mpi dist --processes=2 -g 1 -i IMAGE");
  command.alias = "mpi";
  return command;
}

cli::Command submit_distributed() {
  const cli::Flags slots = {
      {.name = "--slots-per-worker", .value = "N", .help = "ranks in each worker (default: 1)"}};
  const cli::Flags replicas = {{.name = "--min-replicas",
                                .value = "N",
                                .help = "minimum number of workers (default: --workers)"},
                               {.name = "--max-replicas",
                                .value = "N",
                                .help = "maximum number of workers (default: --workers)"}};
  return {
      .name = "submit-dist",
      .help = "submit a distributed job for a framework",
      .commands = {
          submitting("mpi", "submit an MPI job: a launcher and workers",
                     distributed_flags() + slots,
                     "runai submit-dist mpi dist --workers=2 -g 1 -i IMAGE"),
          submitting("pytorch", "submit a PyTorch job: a master and workers",
                     distributed_flags() + replicas,
                     "runai submit-dist pytorch dist --workers=2 -g 1 -i IMAGE"),
          submitting("tf", "submit a TensorFlow cluster: a chief and workers", distributed_flags(),
                     "runai submit-dist tf dist --workers=2 -g 1 -i IMAGE"),
      }};
}

}  // namespace

std::vector<cli::Command> submit_commands() {
  return {submitting("submit", "submit a job with one task", one_task_flags(),
                     "runai submit train -g 1 -i IMAGE"),
          submit_mpi(), submit_distributed()};
}

}  // namespace muster::dialects::runai
