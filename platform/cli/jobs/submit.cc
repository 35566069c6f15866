// submit and run: submit a job, and follow it if requested.
#include <iostream>

#include "api/wire.h"
#include "base/text.h"
#include "cli/command/command.h"
#include "cli/common/job_view.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/connection/connection.h"
#include "cli/jobs/jobs.h"
#include "cli/jobs/submit_file.h"
#include "cli/logs/logs.h"
#include "cli/spec/send_workspace.h"
#include "cli/spec/spec_flags.h"
#include "job/spec_table.h"
#include "record/field.h"

namespace muster::cli::jobs {

using base::Error;
using base::ErrorCode;

namespace {

std::string read_engine_choice(Reading& in) {
  if (!in.reader.has("--engine")) return "";
  return in.reader.choice("--engine", {"process", "container", "slurm", "kubernetes"});
}

SubmitCommand with_manner(Reading& in, SubmitCommand command) {
  command.idempotency_key = in.idempotency_key();
  command.follow = in.reader.has("--follow");
  command.dry_run = in.reader.has("--dry-run");
  command.engine = read_engine_choice(in);
  command.look = logs::read_look(in);
  command.output = in.output();
  if (command.follow && command.dry_run) {
    in.reader.fault("--follow", "cannot be used with --dry-run, which starts nothing");
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
  command.spec = spec::read_submit_spec(kind, in.arguments, in.caller, in.reader);
  command.workspace = spec::read_workspace_flags(in.reader);
  return with_manner(in, std::move(command));
}

Call read_submit_file(Reading& in) {
  SubmitCommand command;
  command.file = in.reader.text("--file");
  command.settings = in.reader.texts("--set");
  command.name = in.reader.text("--name");
  command.shows_spec = in.reader.has("--spec");
  if (command.shows_spec && (in.reader.has("--follow") || in.reader.has("--dry-run"))) {
    in.reader.fault("--spec", "cannot be used with --follow and --dry-run");
  }
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
  command.workspace = spec::read_workspace_flags(in.reader);
  command.idempotency_key = in.idempotency_key();
  command.engine = read_engine_choice(in);
  command.look = logs::read_look(in);
  return command;
}

}  // namespace

namespace {

/// The flags that describe a job of any kind.
Flags job_flags(std::string_view kind) {
  const Flags shared = {
      {.name = "--env",
       .letter = "-e",
       .value = "NAME[=VALUE]",
       .help = "set an environment variable of the job, or copy it from this shell",
       .offer = Offer::kVariables,
       .repeats = true},
      {.name = "--secret",
       .value = "NAME[=VARIABLE]",
       .help = "give the job a secret of the project as a variable",
       .repeats = true},
      {.name = "--secret-file",
       .value = "NAME[=PATH]",
       .help = "give the job a secret as a file in /generated/secrets",
       .repeats = true},
      {.name = "--set",
       .value = "KEY=VALUE",
       .help =
           "set any key of a job file, as in scheduling.priority=60; overrides every other flag",
       .repeats = true},
      {.name = "--idempotency-key",
       .value = "KEY",
       .help = "submit no second job if this key was used before"},
  };
  return spec::field_flags(kind) + spec::importance_flags() + spec::content_flags() + shared;
}

/// The flags of commands that may start the server.
Flags engine_flag() {
  return {{.name = "--engine",
           .value = "HOW",
           .help = "engine of the server: process, container, slurm or kubernetes; used if this "
                   "command starts "
                   "the server, otherwise compared with the running server's engine",
           .choices = {"process", "container", "slurm", "kubernetes"},
           .offer = Offer::kChoices}};
}

Flags submit_flags() {
  return engine_flag() +
         Flags{{.name = "--follow", .help = "print the logs until the job ends"},
               {.name = "--dry-run",
                .help = "show where the job would start or why it would wait; submit nothing"}} +
         logs::look_flags() + output_flag();
}

Command submit_mpi() {
  const Flags shape = {
      {.name = "--workers", .letter = "-n", .value = "N", .help = "number of workers"},
  };
  return {
      .name = "mpi",
      .help = "submit an MPI job: a launcher runs the command and reaches the workers",
      .read = read_submit_kind<job::Kind::kMpi>,
      .positionals = new_name(),
      .takes_program = true,
      .flags = spec::in_groups(shape + spec::worker_flags() + job_flags("mpi") + submit_flags()),
      .example = "muster submit mpi dist --workers 2 --follow -- mpirun -np 2 ./train",
      .see_also = "muster logs, muster get, muster explain, muster stop"};
}

Command submit_single() {
  return {.name = "single",
          .help = "submit a job with one task",
          .read = read_submit_kind<job::Kind::kSingle>,
          .positionals = new_name(),
          .takes_program = true,
          .flags = spec::in_groups(job_flags("single") + submit_flags()),
          .example = "muster submit single train --gpus 1 -- python3 train.py"};
}

Command submit_grpc() {
  const Flags shape = {
      {.name = "--workers",
       .letter = "-n",
       .value = "N",
       .help = "number of workers besides the chief"},
      {.name = "--parameter-server-command",
       .value = "TEXT",
       .help = "command of the parameter servers, run by sh -c (default: CMD)"},
      {.name = "--evaluators", .value = "N", .help = "number of evaluators: 0 or 1 (default: 0)"},
      {.name = "--evaluator-command",
       .value = "TEXT",
       .help = "command of the evaluator, run by sh -c; implies one evaluator (default: CMD)"}};
  return {
      .name = "grpc",
      .help = "submit a TensorFlow cluster: a chief, workers, parameter servers, an evaluator",
      .read = read_submit_kind<job::Kind::kGrpc>,
      .positionals = new_name(),
      .takes_program = true,
      .flags = spec::in_groups(shape + spec::worker_flags() + job_flags("grpc") + submit_flags()),
      .example = "muster submit grpc mnist --workers 1 --parameter-servers 1 -- python3 mnist.py"};
}

Command submit_torch() {
  const Flags shape = {
      {.name = "--workers",
       .letter = "-n",
       .value = "N",
       .help = "number of workers besides the master"},
  };
  return {
      .name = "torch",
      .help = "submit a PyTorch job: a master and workers with the variables of torchrun",
      .read = read_submit_kind<job::Kind::kTorch>,
      .positionals = new_name(),
      .takes_program = true,
      .flags = spec::in_groups(shape + spec::worker_flags() + job_flags("torch") + submit_flags()),
      .example = "muster submit torch ddp --workers 1 --gpus 1 -- torchrun train.py"};
}

}  // namespace

Flags flags_of_job(std::string_view kind) {
  return job_flags(kind);
}

Command submit_command() {
  const Flags file = {
      {.name = "--file",
       .letter = "-f",
       .value = "FILE",
       .help =
           "job file (YAML), also one of Kubernetes: MPIJob, PyTorchJob, TFJob, TrainJob, Job; - "
           "reads standard input",
       .offer = Offer::kFiles},
      {.name = "--name", .value = "NAME", .help = "name of the job; overrides the file"},
      {.name = "--set",
       .value = "KEY=VALUE",
       .help = "set any key of a job file, as in workers=4; overrides the file",
       .repeats = true},
      {.name = "--spec", .help = "print the file as a job file of Muster; submit nothing"},
      {.name = "--idempotency-key",
       .value = "KEY",
       .help = "submit no second job if this key was used before"}};
  return {.name = "submit",
          .more_aliases = {"apply"},
          .help = "submit a job: mpi, grpc, torch, single, or from a file",
          .read = read_submit_file,
          .flags = spec::in_groups(file + submit_flags()),
          .commands = {submit_mpi(), submit_grpc(), submit_torch(), submit_single()},
          .example = "muster submit -f job.yaml --follow",
          .see_also = "muster get --spec, which prints a job as such a file"};
}

Command run_command() {
  const Flags shape = {{.name = "--workers",
                        .letter = "-n",
                        .value = "N",
                        .help = "number of processes; mpirun starts more than one"},
                       {.name = "--name", .value = "NAME", .help = "name of the job"}};
  return {.name = "run",
          .help = "run a command as a job in the foreground; Ctrl-C stops the job",
          .read = read_run,
          .takes_program = true,
          .flags = spec::in_groups(shape + engine_flag() + job_flags("run") + logs::look_flags()),
          .example = "muster run -n 4 -- python3 train.py",
          .see_also = "muster submit, for jobs that go on without this terminal"};
}

namespace {

/// Adds the origin of the project to the error, if the user did not type the project.
base::Error with_origin_of_project(base::Error error, const job::JobSpec& spec,
                                   const Hooks& hooks) {
  const auto caller = this_caller(hooks.context);
  const bool is_in_use = caller && !caller->project.empty() && caller->project == spec.project;
  if (error.code != base::ErrorCode::kNotFound || !is_in_use) return error;
  error.what += ", the project in use";
  error.advice += error.advice.empty() ? "" : "; ";
  error.advice += "choose another with 'muster project use' or MUSTER_PROJECT";
  return error;
}

Result<job::Job> submit_job(Connection& connection, const job::JobSpec& spec,
                            const std::string& key, const Hooks& hooks) {
  auto job = connection.call([&](api::Client& client) { return client.submit(spec, key); });
  if (job) return job;
  return with_origin_of_project(std::move(job).error(), spec, hooks);
}

/// Sends the files of the job's workspace, if any.
Result<void> send_files(const std::optional<spec::WorkspaceOptions>& options, job::JobSpec& spec,
                        const Hooks& hooks) {
  if (!options) return {};
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const spec::SentWorkspace sent,
             spec::send_workspace(connection, spec.project, *options));
  spec::work_in(sent.tree, spec);
  if (!sent.commit.empty()) spec.annotations["muster/commit"] = sent.commit;
  return {};
}

Result<int> submit_and_follow(const job::JobSpec& spec, const std::string& key, logs::LogLook look,
                              logs::OnInterrupt meaning, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  // Constructed before the job is submitted, so that no Ctrl-C is lost between submitting and
  // following.
  Interrupts interrupts;
  MUSTER_TRY(const job::Job job, submit_job(connection, spec, key, hooks));
  connection.set_project(job.spec.project);
  const logs::FollowRequest request{
      .name = job.spec.name, .query = {.follow = true}, .look = look, .on_interrupt = meaning};
  MUSTER_TRY(const logs::FollowEnd end, logs::follow(connection, interrupts, request));
  return logs::report_end(end, request.name, meaning);
}

/// One document, or a list of several.
std::string as_one(const std::vector<std::string>& documents) {
  return documents.size() == 1 ? documents.front() : "[" + base::joined(documents, ",") + "]";
}

/// Prints the forecasts. If a job can never run, the server refuses the request with an error.
Result<int> show_forecasts(const std::vector<ForeignJob>& jobs, Output output, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  std::vector<std::string> pages;
  std::vector<std::string> documents;
  for (const ForeignJob& job : jobs) {
    auto forecast = connection.call([&](api::Client& client) { return client.forecast(job.spec); });
    if (!forecast) return with_origin_of_project(std::move(forecast).error(), job.spec, hooks);
    pages.push_back(forecast_page(job.spec, *forecast, base::SystemClock().now()));
    documents.push_back(api::forecast_to_json(*forecast));
  }
  MUSTER_CHECK(show(output, base::joined(pages, "\n"), as_one(documents)));
  return kExitDone;
}

/// Prints jobs as job files of Muster.
Result<int> show_specs(const std::vector<ForeignJob>& jobs, Output output) {
  std::vector<std::string> pages;
  std::vector<std::string> documents;
  for (const ForeignJob& job : jobs) {
    documents.push_back(record::to_json(job.spec, record::Form::kHuman));
    pages.push_back(json_to_yaml(documents.back()));
    for (const auto& [target, files] : job.files) {
      std::cerr << "muster: note: the files for " << target
                << " are not part of the job file; they are sent when the job is submitted\n";
    }
  }
  MUSTER_CHECK(show(output, base::joined(pages, "---\n"), as_one(documents)));
  return kExitDone;
}

Hooks with_engine(Hooks hooks, const std::string& engine) {
  hooks.engine = engine;
  return hooks;
}

/// The command that the user most likely needs next, without the job's name.
std::string next_step(const job::Job& job) {
  if (job.suspended) return "start it: muster resume ";
  if (job.spec.terminal) return "attach to it: muster attach ";
  const bool is_interactive = job.spec.scheduling.purpose == job::Purpose::kBuild;
  return is_interactive ? "open a shell in it: muster bash " : "follow it: muster logs -f ";
}

}  // namespace

namespace {

Result<std::vector<ForeignJob>> jobs_of(const SubmitCommand& command, const Hooks& hooks) {
  if (!command.file) return std::vector<ForeignJob>{{.spec = command.spec, .files = {}}};
  return read_job_file({.file = *command.file, .name = command.name, .settings = command.settings},
                       hooks);
}

Error too_many_to_follow(size_t count) {
  return {.code = ErrorCode::kInvalid,
          .what = "--follow is for one job, and the file has " + std::to_string(count),
          .advice = "leave it out, and follow each: muster logs -f NAME"};
}

Result<void> show_submitted(const std::vector<job::Job>& jobs, Output output) {
  std::string text;
  std::vector<std::string> documents;
  for (const job::Job& job : jobs) {
    text += "submitted " + job.spec.name + "\n";
    documents.push_back(api::job_to_json(job));
  }
  MUSTER_CHECK(show(output, text, as_one(documents)));
  if (output != Output::kTable) return {};
  for (const job::Job& job : jobs) {
    std::cerr << "  to " << next_step(job) << job.spec.name << std::endl;
  }
  return {};
}

}  // namespace

Result<int> execute(const SubmitCommand& command, const Hooks& given) {
  const Hooks hooks = with_engine(given, command.engine);
  MUSTER_TRY(std::vector<ForeignJob> all, jobs_of(command, hooks));
  if (command.shows_spec) return show_specs(all, command.output);
  if (command.dry_run) return show_forecasts(all, command.output, hooks);
  if (command.follow && all.size() > 1) return too_many_to_follow(all.size());
  job::JobSpec& first = all.front().spec;
  MUSTER_CHECK(send_files(command.workspace, first, hooks));
  if (command.follow) {
    if (!all.front().files.empty()) {
      MUSTER_TRY(Connection connection, connect(hooks));
      MUSTER_CHECK(send_volumes(connection, all.front()));
    }
    return submit_and_follow(first, command.idempotency_key, command.look,
                             logs::OnInterrupt::kDetach, hooks);
  }
  MUSTER_TRY(Connection connection, connect(hooks));
  const job::JobSpec known = first;
  auto submitted = submit_all(connection, std::move(all), command.idempotency_key);
  if (!submitted) return with_origin_of_project(std::move(submitted).error(), known, hooks);
  MUSTER_CHECK(show_submitted(*submitted, command.output));
  return kExitDone;
}

Result<int> execute(const RunCommand& command, const Hooks& given) {
  const Hooks hooks = with_engine(given, command.engine);
  job::JobSpec spec = command.spec;
  MUSTER_CHECK(send_files(command.workspace, spec, hooks));
  return submit_and_follow(spec, command.idempotency_key, command.look, logs::OnInterrupt::kStop,
                           hooks);
}

}  // namespace muster::cli::jobs
