#include "cli/invocation.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "cli/content_flags.h"
#include "cli/invocation_reading.h"
#include "cli/report.h"
#include "cli/server_flags.h"
#include "cli/spec_flags.h"
#include "job/log_pattern.h"
#include "job/project.h"

namespace muster::cli {

namespace {

std::string read_engine_choice(Reading& in) {
  if (!in.reader.has("--engine")) return "";
  return in.reader.choice("--engine", {"process", "container", "slurm"});
}

Invocation read_submit(Reading& in, SubmitCommand command) {
  command.idempotency_key = in.idempotency_key();
  command.follow = in.reader.has("--follow");
  command.dry_run = in.reader.has("--dry-run");
  command.engine = read_engine_choice(in);
  command.look = in.look();
  command.output = in.output();
  if (command.follow && command.dry_run) {
    in.reader.fault("--follow", "does not go with --dry-run, which starts nothing");
  }
  if (command.follow && in.reader.has("--output")) {
    in.reader.fault("--output", "does not go with --follow, which prints the logs");
  }
  return command;
}

Invocation read_submit_kind(Reading& in, job::Kind kind) {
  SubmitCommand command;
  if (in.reader.has("--file")) in.reader.fault("--file", "has a kind and a name of its own");
  command.spec = read_submit_spec(kind, in.arguments, in.caller, in.reader);
  command.workspace = read_workspace_flags(in.reader);
  return read_submit(in, std::move(command));
}

Invocation read_submit_file(Reading& in) {
  SubmitCommand command;
  command.file = in.reader.text("--file");
  command.settings = in.reader.texts("--set");
  command.name = in.reader.text("--name");
  if (!in.reader.has("--file") && in.reader.ok()) {
    in.reader.fault(
        "",
        "say what to submit: 'submit mpi', 'submit grpc', 'submit torch', 'submit single' or "
        "'submit -f FILE'");
  }
  return read_submit(in, std::move(command));
}

Invocation read_run(Reading& in) {
  constexpr size_t kSuffix = 6;
  const std::string name = "run-" + base::random_name(in.random, kSuffix);
  RunCommand command;
  command.spec = read_run_spec(in.arguments, in.caller, name, in.reader);
  command.workspace = read_workspace_flags(in.reader);
  command.idempotency_key = in.idempotency_key();
  command.engine = read_engine_choice(in);
  command.look = in.look();
  return command;
}

int natural_number(Reading& in, const std::string& flag) {
  const int number = in.reader.number(flag, 0);
  if (number < 0) in.reader.fault(flag, "is negative");
  return number;
}

/// One that the server would refuse is told before it is asked.
std::string read_pattern(Reading& in, const std::string& flag) {
  std::string text = in.reader.text(flag);
  if (text.empty()) in.reader.fault(flag, "is empty");
  const auto pattern = job::LogPattern::compile(text);
  if (!pattern) in.reader.fault(flag, pattern.error().what);
  return text;
}

Invocation read_logs(Reading& in) {
  LogsCommand command{
      .name = in.name("job"), .project = in.whose_job(), .query = {}, .look = in.look()};
  command.query.follow = in.reader.has("--follow");
  if (in.reader.has("--task")) command.query.task = in.reader.text("--task");
  command.query.since = in.reader.moment("--since", in.caller.now);
  if (in.reader.has("--tail")) command.query.tail = natural_number(in, "--tail");
  if (in.reader.has("--rank")) command.query.rank = natural_number(in, "--rank");
  if (in.reader.has("--grep")) command.query.grep = read_pattern(in, "--grep");
  command.look.json = in.reader.choice("--output", {"text", "json"}) == "json";
  for (const char* flag : {"--timestamps", "--no-prefix", "--no-fold"}) {
    if (command.look.json && in.reader.has(flag)) {
      in.reader.fault(flag, "does not go with --output json, which has all of a line");
    }
  }
  return command;
}

Invocation read_exec(Reading& in) {
  ExecCommand command{.name = in.name("job"), .project = in.whose_job(), .request = {}};
  command.request.command = in.arguments.program;
  command.request.task = in.reader.text("--task");
  command.request.terminal = in.reader.has("--terminal");
  if (command.request.command.empty() && in.reader.ok()) {
    in.reader.fault("", "say which program to run, behind '--'");
  }
  return command;
}

Invocation read_delete(Reading& in) {
  DeleteCommand command{.names = in.arguments.names,
                        .project = in.whose_job(),
                        .ignore_missing = in.reader.has("--ignore-missing"),
                        .force = in.reader.has("--force"),
                        .dry_run = in.reader.has("--dry-run"),
                        .yes = in.reader.has("--yes")};
  if (in.reader.has("--all-ended") || in.reader.has("--ended-before")) {
    command.ended.emplace(DeleteCommand::Ended{
        .project = command.project.empty() ? in.caller.project : command.project,
        .before = in.reader.moment("--ended-before", in.caller.now)});
  }
  if (command.ended && !command.names.empty()) {
    in.reader.fault("NAME", "does not go with --all-ended and --ended-before");
  } else if (!command.ended && command.names.empty()) {
    in.reader.fault("NAME", "is missing; name the jobs, or say --ended-before 7d");
  }
  if (command.ended && command.force) {
    in.reader.fault("--force", "is for jobs that are named; these have ended");
  }
  return command;
}

Invocation read_server(Reading& in) {
  ServerCommand command{.source = read_server_source(in.caller, in.reader)};
  command.options = read_server_flags(command.source, in.reader);
  if (in.reader.has("--stop")) command.what = ServerCommand::What::kStop;
  if (in.reader.has("--fingerprint")) command.what = ServerCommand::What::kShowFingerprint;
  if (in.reader.has("--stop") && in.reader.has("--fingerprint")) {
    in.reader.fault("--fingerprint", "does not go with --stop");
  }
  return command;
}

Invocation read_store_command(Reading& in, StoreCommand::What what) {
  StoreCommand command{
      .what = what, .source = read_server_source(in.caller, in.reader), .output = in.output()};
  read_server_flags(command.source, in.reader);
  if (what == StoreCommand::What::kCheck) return command;
  if (what == StoreCommand::What::kSetAside) {
    if (in.arguments.names.empty()) {
      in.reader.fault("NAME", "is missing; `muster store check` names the unreadable records");
    } else {
      command.record = in.arguments.names.front();
    }
    return command;
  }
  if (in.arguments.names.empty()) {
    in.reader.fault("FILE", "is missing; name the backup");
  } else {
    // A backup belongs where its caller is, whatever the server's folder.
    command.file = (command.source.folder / in.arguments.names.front()).lexically_normal();
  }
  return command;
}

Invocation read_doctor(Reading& in) {
  DoctorCommand command{.source = read_server_source(in.caller, in.reader),
                        .only_chosen = in.reader.has("--engine"),
                        .output = in.output()};
  read_server_flags(command.source, in.reader);
  return command;
}

Invocation read_simulate(Reading& in) {
  Simulation what = read_simulate_flags(in.reader, in.arguments.names);
  return SimulateCommand{.what = std::move(what), .output = in.output()};
}

Invocation read_completion(Reading& in) {
  const std::string shell = in.arguments.names.empty() ? "" : in.arguments.names.front();
  if (shell != "bash" && shell != "zsh" && shell != "fish") {
    in.reader.fault("SHELL", "'" + shell + "' is none of bash zsh fish");
  }
  return CompletionCommand{shell};
}

Invocation read_help(Reading& in) {
  const Command* command = &in.root;
  for (const std::string& word : in.arguments.names) {
    const Command* child = command->find_command(word);
    if (child == nullptr) {
      in.reader.fault("", unknown_command(word, *command));
      break;
    }
    command = child;
  }
  return HelpCommand{.path = in.arguments.names};
}

constexpr std::array<InvocationReader, 22> kJobReaders{{
    {"run", read_run},
    {"submit", read_submit_file},
    {"submit mpi", [](Reading& in) { return read_submit_kind(in, job::Kind::kMpi); }},
    {"submit grpc", [](Reading& in) { return read_submit_kind(in, job::Kind::kGrpc); }},
    {"submit torch", [](Reading& in) { return read_submit_kind(in, job::Kind::kTorch); }},
    {"submit single", [](Reading& in) { return read_submit_kind(in, job::Kind::kSingle); }},
    {"list",
     [](Reading& in) -> Invocation {
       ListCommand command{
           .project = {}, .labels = in.reader.texts("--label"), .output = in.list_output()};
       if (in.reader.has("--project")) command.project = in.reader.text("--project");
       return command;
     }},
    {"get",
     [](Reading& in) -> Invocation {
       return GetCommand{.name = in.name("job"),
                         .project = in.whose_job(),
                         .spec = in.reader.has("--spec"),
                         .output = in.output()};
     }},
    {"logs", read_logs},
    {"exec", read_exec},
    {"stop",
     [](Reading& in) -> Invocation {
       return StopCommand{.names = in.names("job"),
                          .project = in.whose_job(),
                          .now = in.reader.has("--now"),
                          .output = in.output()};
     }},
    {"delete", read_delete},
    {"server", read_server},
    {"store backup",
     [](Reading& in) { return read_store_command(in, StoreCommand::What::kBackup); }},
    {"store restore",
     [](Reading& in) { return read_store_command(in, StoreCommand::What::kRestore); }},
    {"store check", [](Reading& in) { return read_store_command(in, StoreCommand::What::kCheck); }},
    {"store set-aside",
     [](Reading& in) { return read_store_command(in, StoreCommand::What::kSetAside); }},
    {"doctor", read_doctor},
    {"simulate", read_simulate},
    {"version", [](Reading& in) -> Invocation { return VersionCommand{in.output()}; }},
    {"completion", read_completion},
    {"help", read_help},
}};

Invocation read_root(Reading& in) {
  if (in.reader.has("--version")) return VersionCommand{};
  return HelpCommand{.path = {}, .asked = false};
}

Invocation read_invocation(Reading& in) {
  const std::string path = base::joined(in.arguments.path, " ");
  using Readers = std::span<const InvocationReader>;
  for (const Readers readers :
       {Readers(kJobReaders), cluster_readers(), account_readers(), metric_readers(),
        notify_readers(), session_readers(), transfer_readers(), artifact_readers()}) {
    for (const InvocationReader& reader : readers) {
      if (reader.path == path) return reader.read(in);
    }
  }
  if (in.arguments.path.empty()) return read_root(in);
  // A command that only holds others.
  return HelpCommand{.path = in.arguments.path, .asked = false};
}

}  // namespace

LogLook Reading::look() const {
  return {.prefix = !reader.has("--no-prefix"),
          .timestamps = reader.has("--timestamps"),
          .fold = !reader.has("--no-fold")};
}

Output Reading::output(const std::vector<std::string>& formats) {
  const std::string format = reader.choice("--output", formats);
  if (format == "json") return Output::kJson;
  if (format == "yaml") return Output::kYaml;
  return format == "names" ? Output::kNames : Output::kTable;
}

std::string Reading::idempotency_key() {
  constexpr size_t kLength = 26;  // 130 bits: never met twice
  return reader.text("--idempotency-key", base::random_name(random, kLength));
}

std::string Reading::name(const std::string& of) {
  if (!arguments.names.empty()) return arguments.names.front();
  reader.fault("NAME", "is missing; name the " + of);
  return "";
}

std::vector<std::string> Reading::names(const std::string& of) {
  if (arguments.names.empty()) reader.fault("NAME", "is missing; name the " + of + "s");
  return arguments.names;
}

std::optional<std::string> Reading::optional_name() const {
  if (arguments.names.empty()) return std::nullopt;
  return arguments.names.front();
}

std::string Reading::project_meant() const {
  const std::string in_use =
      caller.project.empty() ? std::string(job::kDefaultProject) : caller.project;
  return reader.text("--project", in_use);
}

std::string context_flag(const std::vector<std::string>& words) {
  const bool may_be_there = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word.starts_with("--context");
  });
  if (!may_be_there) return "";
  const Arguments arguments = sort_arguments(command_tree(), words);
  const auto found = arguments.flags.find("--context");
  return found == arguments.flags.end() ? "" : found->second.back();
}

Result<Invocation> parse_invocation(const std::vector<std::string>& words, const Caller& caller,
                                    base::RandomSource& random) {
  const Command root = command_tree();
  const Arguments arguments = sort_arguments(root, words);
  if (arguments.has("--help")) return Invocation(HelpCommand{.path = arguments.path});
  Reading in{root, arguments, caller, random, FlagReader(arguments)};
  Invocation invocation = read_invocation(in);
  if (!in.reader.ok()) return usage_error(arguments.path, in.reader.faults());
  return invocation;
}

}  // namespace muster::cli
