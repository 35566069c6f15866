// simulate: its flags, by experiment.
#include "cli/command_parts.h"

namespace muster::cli {

namespace {

Flags experiment_flags() {
  return {{.name = "--scenarios",
           .value = "FILE",
           .help = "run the scenarios of a file and say which come out otherwise than it expects",
           .offer = Offer::kFiles},
          {.name = "--openb",
           .value = "NODES PODS",
           .help = "fill a cluster with pods, two CSV files, and say how much of it is allocated",
           .offer = Offer::kFiles},
          {.name = "--trace",
           .value = "CSV",
           .help = "run a list of jobs (submit_s, duration_s, gpus, project) on a cluster",
           .offer = Offer::kFiles}};
}

Flags cluster_flags() {
  return {{.name = "--nodes", .value = "N", .help = "with --trace: how many nodes there are"},
          {.name = "--gpus-per-node", .value = "G", .help = "GPUs of each node (default: 8)"},
          {.name = "--cpus-per-node",
           .value = "N",
           .help = "CPU cores of each node (default: as many as anybody asks for)"},
          {.name = "--memory-per-node",
           .value = "SIZE",
           .help = "memory of each node (default: as much as anybody asks for)"},
          {.name = "--project",
           .value = "NAME=GPUS[:WEIGHT]",
           .help = "the quota of a project of the trace (default: equal parts)",
           .repeats = true}};
}

Flags policy_flags() {
  return {{.name = "--policy",
           .value = "POLICY",
           .help = "who is next: fair (as the server does it), backfill or fifo (one queue)",
           .choices = {"fair", "backfill", "fifo"},
           .offer = Offer::kChoices},
          {.name = "--checkpoint",
           .help = "evicted jobs go on where they were; without, they start over"},
          {.name = "--per-project", .help = "show each project, too"},
          {.name = "--chart",
           .value = "FILE",
           .help = "draw queue and utilisation over time, as SVG",
           .offer = Offer::kFiles},
          {.name = "--packing",
           .value = "HOW",
           .help = "with --openb: how nodes are chosen (default: fragmentation)",
           .choices = {"fragmentation", "pack", "spread"},
           .offer = Offer::kChoices}};
}

}  // namespace

Command simulate() {
  return {.name = "simulate",
          .help = "the scheduler on a virtual clock: what if there were two more nodes?",
          .positionals = {.name = "PODS", .least = 0, .most = 1, .offer = Offer::kFiles},
          .flags = experiment_flags() + cluster_flags() + policy_flags() + output_flag(),
          .example = "muster simulate --trace jobs.csv --nodes 4 --chart queue.svg"};
}

}  // namespace muster::cli
