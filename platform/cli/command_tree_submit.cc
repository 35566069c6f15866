// submit and run: the flags that describe a job, for each of its kinds.
#include "cli/command_parts.h"

namespace muster::cli {

Flags look_flags() {
  return {{.name = "--timestamps", .help = "begin each line with its time"},
          {.name = "--no-prefix", .help = "print lines without [rank@host] or [task]"},
          {.name = "--no-fold", .help = "on a terminal, print repeated lines each time"}};
}

namespace {

/// What describes a job, whichever its kind.
Flags job_flags(std::string_view kind) {
  const Flags shared = {
      {.name = "--env",
       .letter = "-e",
       .value = "NAME[=VALUE]",
       .help = "set a variable of the job, or copy it from here",
       .offer = Offer::kVariables,
       .repeats = true},
      {.name = "--secret",
       .value = "NAME[=VARIABLE]",
       .help = "hand a secret of the project over as a variable",
       .repeats = true},
      {.name = "--secret-file",
       .value = "NAME[=PATH]",
       .help = "hand it over as a file below /generated/secrets",
       .repeats = true},
      {.name = "--set",
       .value = "KEY=VALUE",
       .help = "set any key of a job file, as in scheduling.priority=60; wins over all else",
       .repeats = true},
      {.name = "--idempotency-key",
       .value = "KEY",
       .help = "submitting again with the same key makes no second job"},
  };
  return field_flags(kind) + importance_flags() + content_flags() + shared;
}

/// Of commands that may start the server.
Flags engine_flag() {
  return {{.name = "--engine",
           .value = "HOW",
           .help = "what jobs run on, where this starts the server: process, container or slurm; "
                   "a server with another is refused",
           .choices = {"process", "container", "slurm"},
           .offer = Offer::kChoices}};
}

Flags submit_flags() {
  return engine_flag() +
         Flags{{.name = "--follow", .help = "print the logs until the job has ended"},
               {.name = "--dry-run",
                .help = "say where it would start, or why it would wait; submit nothing"}} +
         look_flags() + output_flag();
}

Command submit_mpi() {
  const Flags shape = {
      {.name = "--workers", .letter = "-n", .value = "N", .help = "how many workers"},
  };
  return {.name = "mpi",
          .help = "a launcher that runs the command, and workers that it reaches",
          .positionals = new_name(),
          .takes_program = true,
          .flags = shape + worker_flags() + job_flags("mpi") + submit_flags(),
          .example = "muster submit mpi dist --workers 2 --follow -- mpirun -np 2 ./train"};
}

Command submit_single() {
  return {.name = "single",
          .help = "one task, which runs the command",
          .positionals = new_name(),
          .takes_program = true,
          .flags = job_flags("single") + submit_flags(),
          .example = "muster submit single train --gpus 1 -- python3 train.py"};
}

Command submit_grpc() {
  const Flags shape = {
      {.name = "--workers", .letter = "-n", .value = "N", .help = "workers beside the chief"},
      {.name = "--parameter-server-command",
       .value = "TEXT",
       .help = "what they run, by sh -c (default: the command)"},
      {.name = "--evaluators",
       .value = "N",
       .help = "1: evaluate checkpoints beside the cluster (default: 0)"},
      {.name = "--evaluator-command",
       .value = "TEXT",
       .help = "what it runs, by sh -c (default: the command)"}};
  return {
      .name = "grpc",
      .help = "a TensorFlow cluster: a chief, workers, parameter servers, an evaluator",
      .positionals = new_name(),
      .takes_program = true,
      .flags = shape + worker_flags() + job_flags("grpc") + submit_flags(),
      .example = "muster submit grpc mnist --workers 1 --parameter-servers 1 -- python3 mnist.py"};
}

Command submit_torch() {
  const Flags shape = {
      {.name = "--workers", .letter = "-n", .value = "N", .help = "workers beside the master"},
  };
  return {.name = "torch",
          .help = "a master and workers, each told its rank and where the master is",
          .positionals = new_name(),
          .takes_program = true,
          .flags = shape + worker_flags() + job_flags("torch") + submit_flags(),
          .example = "muster submit torch ddp --workers 1 --gpus 1 -- torchrun train.py"};
}

}  // namespace

Command submit() {
  const Flags file = {{.name = "--file",
                       .letter = "-f",
                       .value = "FILE",
                       .help = "the job as a YAML file; - reads standard input",
                       .offer = Offer::kFiles},
                      {.name = "--name",
                       .value = "NAME",
                       .help = "what the job is called, in the place of the file's name"},
                      {.name = "--set",
                       .value = "KEY=VALUE",
                       .help = "set any key of the file, as in workers=4; wins over the file",
                       .repeats = true},
                      {.name = "--idempotency-key",
                       .value = "KEY",
                       .help = "submitting again with the same key makes no second job"}};
  return {.name = "submit",
          .help = "hand a job over: mpi, grpc, torch, single, or from a file",
          .flags = file + submit_flags(),
          .commands = {submit_mpi(), submit_grpc(), submit_torch(), submit_single()},
          .example = "muster submit -f job.yaml --follow"};
}

Command run_in_foreground() {
  const Flags shape = {{.name = "--workers",
                        .letter = "-n",
                        .value = "N",
                        .help = "processes to start, by mpirun where more than 1"},
                       {.name = "--name", .value = "NAME", .help = "name of the job"}};
  return {.name = "run",
          .help = "run a command as a job in the foreground; Ctrl-C stops it",
          .takes_program = true,
          .flags = shape + engine_flag() + job_flags("run") + look_flags(),
          .example = "muster run -n 4 -- python3 train.py"};
}

}  // namespace muster::cli
