// submit and run: their flags and help, and what a command line asks of them. submitting.cc carries it
// out.
#include <string>
#include <string_view>
#include <utility>

#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/jobs/arrays.h"
#include "cli/jobs/jobs.h"
#include "cli/jobs/submit_file.h"
#include "cli/logs/logs.h"
#include "cli/spec/send_workspace.h"
#include "cli/spec/spec_flags.h"
#include "job/validate.h"

namespace muster::cli::jobs {

namespace {

std::string read_engine_choice(Reading& in) {
  if (!in.reader.has("--engine")) return "";
  return in.reader.choice("--engine", {"process", "container", "slurm", "kubernetes"});
}

SubmitCommand with_manner(Reading& in, SubmitCommand command) {
  command.array = read_array_flags(in.reader);
  command.key = in.submission_key();
  command.follow = in.reader.has("--follow");
  command.dry_run = in.reader.has("--dry-run");
  command.engine = read_engine_choice(in);
  command.name_suffix = in.reader.has("--name-suffix");
  command.look = logs::read_look(in);
  command.output = in.output();
  if (command.follow && command.dry_run) {
    in.reader.fault("--follow", "cannot be used with --dry-run, which starts nothing");
  }
  command.shows_spec = in.reader.has("--spec");
  if (command.shows_spec && (command.follow || command.dry_run)) {
    in.reader.fault("--spec", "cannot be used with --follow and --dry-run");
  }
  if (command.follow && in.reader.has("--output")) {
    in.reader.fault("--output", "cannot be used with --follow, which prints the logs");
  }
  return command;
}

template <job::Kind kind>
Call read_submit_kind(Reading& in) {
  SubmitCommand command;
  if (in.reader.has("--file"))
    in.reader.fault("--file", "contains the kind and the name; omit them");
  if (in.reader.has("--name")) {
    in.reader.fault("--name", "is for a job file; write the name after the kind: muster submit " +
                                  std::string(job::to_string(kind)) + " NAME");
  }
  if (in.reader.has("--only"))
    in.reader.fault("--only",
                    "chooses one of the jobs of a file (-f), and no file is given; leave it out");
  Arguments arguments = in.arguments;
  if (!arguments.names.empty() && job::is_name_template(arguments.names.front())) {
    Submission example;
    set_name(arguments.names.front(), example);
    command.name_template = example.options.name_template;
    arguments.names.front() = example.spec.name;
  }
  command.spec = spec::read_submit_spec(kind, arguments, in.caller, in.reader);
  command.workspace = spec::read_workspace_flags(in.reader);
  return with_manner(in, std::move(command));
}

Call read_submit_file(Reading& in) {
  SubmitCommand command;
  command.file = in.reader.text("--file");
  command.settings = in.reader.texts("--set");
  command.name = in.reader.text("--name");
  command.only = in.reader.text("--only");
  command.flags = spec::read_overrides(in.arguments, in.caller, in.reader);
  command.workspace = spec::read_workspace_flags(in.reader);
  if (!in.reader.has("--file") && in.reader.ok()) {
    in.reader.fault("",
                    "nothing to submit; use 'submit mpi', 'submit grpc', 'submit torch', 'submit "
                    "single' or 'submit -f FILE'");
  }
  return with_manner(in, std::move(command));
}

Call read_run(Reading& in) {
  constexpr size_t kSuffix = 6;
  const std::string name = "run-" + base::random_name(in.random, kSuffix);
  RunCommand command;
  command.spec = spec::read_run_spec(in.arguments, in.caller, name, in.reader);
  command.is_name_made = !in.reader.has("--name");
  command.workspace = spec::read_workspace_flags(in.reader);
  command.idempotency_key = in.idempotency_key();
  command.engine = read_engine_choice(in);
  command.look = logs::read_look(in);
  return command;
}

/// The flags that describe a job of any kind.
Flags job_flags(std::string_view kind) {
  const Flags shared = {
      {.name = "--set",
       .value = "KEY=VALUE",
       .help =
           "set any key of a job file, as in scheduling.priority=60; overrides every other flag",
       .repeats = true},
  };
  return spec::field_flags(kind) + spec::importance_flags() + spec::content_flags() +
         spec::variable_flags() + shared;
}

/// The flags of commands that may start the server.
Flags engine_flag() {
  return {{.name = "--engine",
           .value = "HOW",
           .help = "engine of the server: process, container, slurm or kubernetes; used if this "
                   "command starts the server, otherwise compared with the running server's engine",
           .choices = {"process", "container", "slurm", "kubernetes"},
           .offer = Offer::kChoices}};
}

}  // namespace

Flags submit_flags() {
  return array_flags() + engine_flag() +
         Flags{
             {.name = "--follow", .help = "print the logs until the job ends"},
             {.name = "--dry-run",
              .help = "show where the job would start or why it would wait, and which values come "
                      "from the command line; submit nothing"},
             {.name = "--name-suffix",
              .help = "if the name is taken, add the next free number, as in NAME-2"},
             {.name = "--idempotency-key",
              .value = "KEY",
              .help = "submit no second job if this key was used before"}} +
         logs::look_flags() + output_flag();
}

namespace {

/// The flags that give the number of tasks of a job of this kind.
Flags shape_flags(std::string_view kind) {
  if (kind == "single") return {};
  const char* const help = kind == "mpi"    ? "number of workers"
                           : kind == "grpc" ? "number of workers besides the chief"
                                            : "number of workers besides the master";
  Flags shape = {{.name = "--workers", .letter = "-n", .value = "N", .help = help}};
  if (kind == "grpc") {
    shape = shape + Flags{{.name = "--parameter-server-command",
                           .value = "TEXT",
                           .help = "command of the parameter servers, run by sh -c (default: CMD)"},
                          {.name = "--evaluators",
                           .value = "N",
                           .help = "number of evaluators: 0 or 1 (default: 0)"},
                          {.name = "--evaluator-command",
                           .value = "TEXT",
                           .help = "command of the evaluator, run by sh -c; implies one evaluator "
                                   "(default: CMD)"}};
  }
  return shape + spec::worker_flags();
}

}  // namespace

Flags flags_of_job(std::string_view kind) {
  return shape_flags(kind) + job_flags(kind);
}

namespace {

Command submit_mpi() {
  return {.name = "mpi",
          .help = "submit an MPI job: a launcher runs the command and reaches the workers",
          .read = read_submit_kind<job::Kind::kMpi>,
          .positionals = new_name(),
          .takes_program = true,
          .flags = spec::in_groups(flags_of_job("mpi") + submit_flags()),
          .example = "muster submit mpi dist --workers 2 --follow -- mpirun -np 2 ./train",
          .see_also = "muster logs, muster get, muster explain, muster stop"};
}

Command submit_single() {
  return {.name = "single",
          .help = "submit a job with one task",
          .read = read_submit_kind<job::Kind::kSingle>,
          .positionals = new_name(),
          .takes_program = true,
          .flags = spec::in_groups(flags_of_job("single") + submit_flags()),
          .example = "muster submit single train --gpus 1 -- python3 train.py"};
}

Command submit_grpc() {
  return {
      .name = "grpc",
      .help = "submit a TensorFlow cluster: a chief, workers, parameter servers, an evaluator",
      .read = read_submit_kind<job::Kind::kGrpc>,
      .positionals = new_name(),
      .takes_program = true,
      .flags = spec::in_groups(flags_of_job("grpc") + submit_flags()),
      .example = "muster submit grpc mnist --workers 1 --parameter-servers 1 -- python3 mnist.py"};
}

Command submit_torch() {
  return {.name = "torch",
          .help = "submit a PyTorch job: a master and workers with the variables of torchrun",
          .read = read_submit_kind<job::Kind::kTorch>,
          .positionals = new_name(),
          .takes_program = true,
          .flags = spec::in_groups(flags_of_job("torch") + submit_flags()),
          .example = "muster submit torch ddp --workers 1 --gpus 1 -- torchrun train.py"};
}

}  // namespace

Command submit_command() {
  const Flags file = {
      {.name = "--file",
       .letter = "-f",
       .value = "FILE",
       .help =
           "job file (YAML), also one of Kubernetes: MPIJob, PyTorchJob, TFJob, TrainJob, Job; - "
           "reads standard input",
       .offer = Offer::kFiles},
      {.name = "--name",
       .value = "NAME",
       .help = "name of the job; overrides the file. In train-{n}, {n} becomes the next number"},
      {.name = "--only",
       .value = "NAME",
       .help = "of a file with several jobs, submit only this job"},
      {.name = "--set",
       .value = "KEY=VALUE",
       .help =
           "set any key of a job file, as in workers=4; overrides the file and every other flag",
       .repeats = true},
      {.name = "--spec", .help = "print the job as a job file of Muster; submit nothing"}};
  return {.name = "submit",
          .more_aliases = {"apply"},
          .help = "submit a job: mpi, grpc, torch, single, or from a file that flags override",
          .read = read_submit_file,
          .takes_program = true,
          .flags = spec::in_groups(file + spec::override_flags() + submit_flags()),
          .commands = {submit_mpi(), submit_grpc(), submit_torch(), submit_single()},
          .example = "muster submit -f job.yaml --follow",
          .see_also = "muster get --spec, which prints a job as such a file"};
}

Command run_command() {
  const Flags shape = {{.name = "--workers",
                        .letter = "-n",
                        .value = "N",
                        .help = "number of processes; with more than one, mpirun starts them"},
                       {.name = "--name", .value = "NAME", .help = "name of the job"}};
  return {
      .name = "run",
      .help = "run a command as a job in the foreground; Ctrl-C stops the job",
      .read = read_run,
      .takes_program = true,
      .flags = spec::in_groups(shape + engine_flag() + job_flags("run") +
                               Flags{{.name = "--idempotency-key",
                                      .value = "KEY",
                                      .help = "submit no second job if this key was used before"}} +
                               logs::look_flags()),
      .example = "muster run -n 4 -- python3 train.py",
      .see_also = "muster submit, for jobs that go on without this terminal"};
}

}  // namespace muster::cli::jobs
