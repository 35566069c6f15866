// The flags that say what a job needs, and how important it is.
#include "cli/command_parts.h"

namespace muster::cli {

Flags elastic_flags() {
  return {{.name = "--min-workers",
           .value = "N",
           .help = "run with so many of them at the least; the others come and go with the room"},
          {.name = "--max-workers",
           .value = "N",
           .help = "--workers of such a job; alone: with as few as its kind can do with"},
          {.name = "--resize",
           .value = "HOW",
           .help = "how it takes that: live (it goes on), restart, or auto (as its command can)",
           .choices = {"auto", "live", "restart"},
           .offer = Offer::kChoices}};
}

Flags resource_flags() {
  return {
      {.name = "--gpus", .value = "N", .help = "GPUs of each worker"},
      {.name = "--gpu-share",
       .value = "PART",
       .help = "instead: a part of one GPU, as in 0.5; shared with other tasks"},
      {.name = "--gpu-memory",
       .value = "SIZE",
       .help = "instead: as much of one GPU as has this memory, as in 8G"},
      {.name = "--cpus", .value = "N", .help = "CPU cores of each worker, as in 4, 0.5 or 500m"},
      {.name = "--memory", .value = "SIZE", .help = "memory of each worker, as in 16G"},
      {.name = "--node-pool",
       .value = "POOL",
       .help = "run in this node pool; repeated, in the first that has room",
       .repeats = true},
      {.name = "--gpu-model",
       .value = "MODEL",
       .help = "on GPUs of this model; repeated, of any of these",
       .repeats = true},
      {.name = "--packing",
       .value = "HOW",
       .help = "on which of the nodes that fit: auto, pack (the fullest) or spread",
       .choices = {"auto", "pack", "spread"},
       .offer = Offer::kChoices},
      {.name = "--topology", .value = "LEVEL", .help = "all workers within one, as in rack"},
      {.name = "--prefer-topology", .value = "LEVEL", .help = "within one if there is room"},
  };
}

Flags importance_flags() {
  return {
      {.name = "--project",
       .value = "NAME",
       .help = "whose quota it runs in",
       .offer = Offer::kProjects},
      {.name = "--priority",
       .value = "N",
       .help = "0 to 1000, or what it is for: train (50), build (100) or inference (125)"},
      {.name = "--interactive",
       .help = "somebody sits before it: as --priority build; without a command it waits for "
               "'muster bash'"},
      {.name = "--preemptible", .help = "may exceed the quota, and be evicted"},
      {.name = "--no-preemptible", .help = "stays within the quota, and is never evicted"},
      {.name = "--time-limit", .value = "TIME", .help = "end it then, as in 12h"},
      {.name = "--retries",
       .value = "N",
       .help = "start it again so often when it fails (default: 0)"},
      {.name = "--on-exit",
       .value = "CODE=ACTION",
       .help = "for an exit code: retry, fail, or avoid-node (start again elsewhere)",
       .repeats = true},
      {.name = "--on-log",
       .value = "PATTERN=ACTION",
       .help = "for a regular expression that its last lines match",
       .repeats = true},
  };
}

Flags content_flags() {
  return {
      {.name = "--workspace",
       .value = "FROM",
       .help = "send a folder, a .zip or a git URL: the working folder of every task",
       .offer = Offer::kFolders},
      {.name = "--workspace-ref",
       .value = "REF",
       .help = "of the git URL: a branch, a tag or a commit"},
      {.name = "--ignore",
       .value = "PATTERN",
       .help = "leave these files out, beside those of .gitignore",
       .repeats = true},
      {.name = "--volume",
       .letter = "-v",
       .value = "FROM:TO[:ro]",
       .help = "a path of the node at another of the tasks; storage/NAME is the project's own "
               "folder of that name, artifacts the job's",
       .repeats = true},
      {.name = "--artifacts",
       .value = "FOLDER",
       .help = "keep what it writes there, for 'muster artifacts' (default: /artifacts)",
       .value_optional = true},
      {.name = "--label",
       .letter = "-l",
       .value = "NAME[=VALUE]",
       .help = "to select it by",
       .repeats = true},
      {.name = "--hold", .help = "register it; 'muster resume' starts it"},
      {.name = "--stdin", .help = "let its program read what 'muster attach' sends"},
      {.name = "--tty", .help = "give its program a terminal, for 'muster attach'"},
      {.name = "--keep-for",
       .value = "TIME",
       .help = "remove it so long after its end (default: as the server has it)"},
  };
}

}  // namespace muster::cli
