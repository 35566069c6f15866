// The flags that say what image a job runs in, how far its containers are set apart, and what is
// said of it to the cluster that it runs on.
#include "cli/command_parts.h"
#include "job/capability.h"

namespace muster::cli {

Flags container_flags() {
  return {
      {.name = "--image",
       .letter = "-i",
       .value = "IMAGE",
       .help = "what it runs in, where the engine runs images, or its stand-in"},
      {.name = "--keep-entrypoint",
       .help = "the command is what the image's entry point is given (default: in its place)"},
      {.name = "--user",
       .value = "USER[:GROUP]",
       .help = "who runs in the image (default: whom the image says)"},
      {.name = "--image-pull-policy",
       .value = "WHEN",
       .help = "fetch the image if-missing (default), always or never",
       .choices = {"if-missing", "always", "never"},
       .offer = Offer::kChoices},
      {.name = "--registry-username", .value = "USER", .help = "who logs in to fetch the image"},
      {.name = "--registry-secret",
       .value = "NAME",
       .help = "the secret of the project that holds the password"},
      {.name = "--registry-server",
       .value = "HOST[:PORT]",
       .help = "where to log in (default: where the image is)"},
      {.name = "--writable-root", .help = "let it write to all of the image, not to volumes alone"},
      {.name = "--allow-new-privileges", .help = "let set-user-id programs get what they say"},
      {.name = "--cap-add",
       .value = "NAME",
       .help = "leave root this right, as in SYS_PTRACE",
       .choices = job::capabilities(),
       .offer = Offer::kChoices,
       .repeats = true},
      {.name = "--shm-size", .value = "SIZE", .help = "of /dev/shm, as in 8G"},
  };
}

Flags slurm_flags() {
  return {
      {.name = "--slurm-partition",
       .value = "NAMES",
       .help = "on Slurm: the partitions it may wait in, as in gpu,long"},
      {.name = "--slurm-account",
       .value = "NAME",
       .help = "on Slurm: the account it is charged to (default: its project's)"},
      {.name = "--slurm-qos", .value = "NAME", .help = "on Slurm: its quality of service"},
      {.name = "--slurm-reservation", .value = "NAME", .help = "on Slurm: run within this one"},
      {.name = "--slurm-constraint",
       .value = "FEATURES",
       .help = "on Slurm: what its nodes have, as in 'a100&nvlink'"},
  };
}

Flags launch_flag() {
  return {{.name = "--launch",
           .value = "HOW",
           .help = "start ranks by ssh, by agent, which needs no sshd, or on Slurm by srun "
                   "(default: auto)",
           .choices = {"auto", "ssh", "agent", "srun"},
           .offer = Offer::kChoices},
          {.name = "--allow-launcher-only",
           .help = "succeed even where the command never ran anything in a worker"}};
}

}  // namespace muster::cli
