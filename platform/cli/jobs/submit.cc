// submit and run: submit a job, and follow it if requested.
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/array_wire.h"
#include "api/wire.h"
#include "base/text.h"
#include "cli/command/command.h"
#include "cli/common/job_view.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/connection/connection.h"
#include "cli/jobs/arrays.h"
#include "cli/jobs/jobs.h"
#include "cli/jobs/submit_file.h"
#include "cli/logs/logs.h"
#include "cli/spec/send_workspace.h"
#include "cli/spec/spec_flags.h"
#include "job/spec_table.h"
#include "job/validate.h"
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
  command.array = read_array_flags(in.reader);
  command.idempotency_key = in.idempotency_key();
  command.follow = in.reader.has("--follow");
  command.dry_run = in.reader.has("--dry-run");
  command.engine = read_engine_choice(in);
  command.name_suffix = in.reader.has("--name-suffix");
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
                   "command starts "
                   "the server, otherwise compared with the running server's engine",
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
              .help = "if the name is taken, use the next free one: as in NAME-2"},
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
      {.name = "--spec", .help = "print the file as a job file of Muster; submit nothing"}};
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
                        .help = "number of processes; mpirun starts more than one"},
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

Result<job::Job> submit_job(Connection& connection, const Submission& job, const std::string& key,
                            const Hooks& hooks) {
  auto submitted = connection.call(
      [&](api::Client& client) { return client.submit(job.spec, key, job.options); });
  if (submitted) return submitted;
  return with_origin_of_project(std::move(submitted).error(), job.spec, hooks);
}

Result<int> submit_and_follow(Submission submission, const std::string& key, logs::LogLook look,
                              logs::OnInterrupt meaning, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_CHECK(send_files(connection, submission));
  // Constructed before the job is submitted, so that no Ctrl-C is lost between submitting and
  // following.
  Interrupts interrupts;
  if (!submission.spec.array.is_none()) {
    auto array = connection.call(
        [&](api::Client& client) { return client.submit_array(submission.spec, key); });
    if (!array) return with_origin_of_project(std::move(array).error(), submission.spec, hooks);
    connection.set_project(array->spec.project);
    return logs::follow_array(connection, interrupts,
                              {.name = array->id, .query = {.follow = true}, .look = look});
  }
  MUSTER_TRY(const job::Job job, submit_job(connection, submission, key, hooks));
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
Result<int> show_forecasts(const std::vector<Submission>& jobs, const SubmitRun& run,
                           const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  std::vector<std::string> pages;
  std::vector<std::string> documents;
  for (const Submission& job : jobs) {
    auto forecast = connection.call(
        [&](api::Client& client) { return client.forecast(job.spec, job.options); });
    if (!forecast) return with_origin_of_project(std::move(forecast).error(), job.spec, hooks);
    const std::string title = jobs.size() == 1 ? "" : "JOB " + job.spec.name + "\n";
    const std::string changes = changes_table(job.changes, run.origin);
    pages.push_back(title + forecast_page(job.spec, *forecast, base::SystemClock().now()) +
                    (changes.empty() ? "" : "\nCHANGED\n" + changes));
    documents.push_back(api::forecast_to_json(*forecast));
  }
  MUSTER_CHECK(show(run.output, base::joined(pages, "\n"), as_one(documents)));
  return kExitDone;
}

/// Prints jobs as job files of Muster.
Result<int> show_specs(const std::vector<Submission>& jobs, Output output) {
  std::vector<std::string> pages;
  std::vector<std::string> documents;
  for (const Submission& job : jobs) {
    documents.push_back(record::to_json(job.spec, record::Form::kHuman));
    pages.push_back(json_to_yaml(documents.back()));
    for (const auto& [target, files] : job.files) {
      std::cerr << "muster: note: the files for " << target
                << " are not part of the job file; they are sent when the job is submitted\n";
    }
    if (job.workspace) {
      std::cerr << "muster: note: the workspace '" << job.workspace->source.where
                << "' is sent when the job is submitted, and is not part of this page\n";
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

Result<std::vector<Submission>> jobs_of(const SubmitCommand& command, const Hooks& hooks) {
  std::vector<Submission> jobs;
  if (command.file) {
    MUSTER_TRY(jobs, read_job_file({.file = *command.file,
                                    .name = command.name,
                                    .only = command.only,
                                    .settings = command.settings,
                                    .flags = command.flags},
                                   hooks));
  } else {
    jobs.push_back({.spec = command.spec, .options = {.name_template = command.name_template}});
  }
  if (command.array.is_set() && jobs.size() > 1) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "--array and the like are for one job, and the file has " +
                         std::to_string(jobs.size()),
                 .advice = "choose one with --only, or write `array` into the file"};
  }
  for (Submission& job : jobs) {
    MUSTER_CHECK(apply_array_flags(command.array, job.spec));
    job.options.name_suffix = command.name_suffix;
    if (command.workspace) job.workspace = command.workspace;
  }
  return jobs;
}

Error too_many_to_follow(size_t count) {
  return {.code = ErrorCode::kInvalid,
          .what = "--follow is for one job, and the file has " + std::to_string(count),
          .advice = "leave it out, and follow each: muster logs -f NAME"};
}

/// "submitted train-2, a rerun of train".
std::string submitted_text(const job::Job& job) {
  const bool is_rerun = job.origin && job.origin->kind == job::JobOrigin::Kind::kRerun;
  return "submitted " + job.spec.name + (is_rerun ? ", a rerun of " + job.origin->name : "") + "\n";
}

Result<void> show_submitted(const std::vector<Submitted>& all, Output output) {
  std::string text;
  std::vector<std::string> documents;
  for (const auto& [job, array] : all) {
    text += array ? "submitted " + job.spec.name + ": " + std::to_string(array->counts.all()) +
                        " members\n"
                  : submitted_text(job);
    documents.push_back(array ? api::array_to_json(*array) : api::job_to_json(job));
  }
  MUSTER_CHECK(show(output, text, as_one(documents)));
  if (output != Output::kTable) return {};
  for (const auto& [job, array] : all) {
    std::cerr << "  to " << next_step(job) << job.spec.name << std::endl;
  }
  return {};
}

/// "flag; the file has 2".
std::string changed_from(const spec::ChangedValue& change, const std::string& origin) {
  const std::string by = change.by_setting ? "--set" : "flag";
  if (!change.value.left) return by;
  const std::string value = value_words(change.value.left);
  return by + "; " + (change.was_given ? origin + " has " : "the default is ") +
         (value.empty() ? "none" : value);
}

}  // namespace

std::string value_words(const std::optional<std::string>& json) {
  if (!json) return "";
  const auto value = nlohmann::json::parse(*json, nullptr, false);
  return value.is_string() ? value.get<std::string>() : *json;
}

std::string changes_table(const std::vector<spec::ChangedValue>& changes,
                          const std::string& origin) {
  if (changes.empty()) return "";
  Table table({{"KEY"}, {"VALUE"}, {"FROM"}});
  for (const spec::ChangedValue& change : changes) {
    const std::string value = change.value.right ? value_words(change.value.right) : "removed";
    table.add({change.value.path, value, changed_from(change, origin)});
  }
  return table.to_string("  ");
}

Result<int> carry_out(std::vector<Submission> jobs, const SubmitRun& run, const Hooks& hooks) {
  if (run.dry_run) return show_forecasts(jobs, run, hooks);
  if (run.follow && jobs.size() > 1) return too_many_to_follow(jobs.size());
  if (run.follow) {
    return submit_and_follow(std::move(jobs.front()), run.idempotency_key, run.look,
                             logs::OnInterrupt::kDetach, hooks);
  }
  MUSTER_TRY(Connection connection, connect(hooks));
  const job::JobSpec known = jobs.front().spec;
  auto submitted = submit_all(connection, std::move(jobs), run.idempotency_key);
  if (!submitted) return with_origin_of_project(std::move(submitted).error(), known, hooks);
  MUSTER_CHECK(show_submitted(*submitted, run.output));
  return kExitDone;
}

Result<int> execute(const SubmitCommand& command, const Hooks& given) {
  const Hooks hooks = with_engine(given, command.engine);
  MUSTER_TRY(std::vector<Submission> all, jobs_of(command, hooks));
  if (command.shows_spec) return show_specs(all, command.output);
  return carry_out(std::move(all),
                   {.idempotency_key = command.idempotency_key,
                    .follow = command.follow,
                    .dry_run = command.dry_run,
                    .look = command.look,
                    .output = command.output},
                   hooks);
}

Result<int> execute(const RunCommand& command, const Hooks& given) {
  const Hooks hooks = with_engine(given, command.engine);
  return submit_and_follow({.spec = command.spec, .workspace = command.workspace},
                           command.idempotency_key, command.look, logs::OnInterrupt::kStop, hooks);
}

}  // namespace muster::cli::jobs
