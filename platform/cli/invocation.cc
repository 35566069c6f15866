#include "cli/invocation.h"

#include <array>
#include <filesystem>
#include <utility>

#include "cli/report.h"
#include "cli/spec_flags.h"

namespace muster::cli {

namespace {

/// All that the readers below need.
struct Reading {
  const Command& root;
  const Arguments& arguments;
  const Caller& caller;
  base::RandomSource& random;
  FlagReader reader;

  LogLook look() const {
    return {.prefix = !reader.has("--no-prefix"), .timestamps = reader.has("--timestamps")};
  }

  Output output(const std::vector<std::string>& formats = {"table", "json", "yaml"}) {
    const std::string format = reader.choice("--output", formats);
    if (format == "json") return Output::kJson;
    if (format == "yaml") return Output::kYaml;
    return format == "names" ? Output::kNames : Output::kTable;
  }

  std::string idempotency_key() {
    constexpr size_t kLength = 26;  // 130 bits: never met twice
    return reader.text("--idempotency-key", base::random_name(random, kLength));
  }

  /// The one name that the command takes.
  std::string name() {
    if (!arguments.names.empty()) return arguments.names.front();
    reader.fault("NAME", "is missing; name the job");
    return "";
  }

  std::vector<std::string> names() {
    if (arguments.names.empty()) reader.fault("NAME", "is missing; name the jobs");
    return arguments.names;
  }
};

using Reader = Invocation (*)(Reading&);

Invocation read_submit(Reading& in, SubmitCommand command) {
  command.idempotency_key = in.idempotency_key();
  command.follow = in.reader.has("--follow");
  command.look = in.look();
  command.output = in.output();
  if (command.follow && in.reader.has("--output")) {
    in.reader.fault("--output", "does not go with --follow, which prints the logs");
  }
  return command;
}

Invocation read_submit_kind(Reading& in, job::Kind kind) {
  SubmitCommand command;
  if (in.reader.has("--file")) in.reader.fault("--file", "has a kind and a name of its own");
  command.spec = read_submit_spec(kind, in.arguments, in.caller, in.reader);
  return read_submit(in, std::move(command));
}

Invocation read_submit_file(Reading& in) {
  SubmitCommand command;
  command.file = in.reader.text("--file");
  if (!in.reader.has("--file") && in.reader.ok()) {
    in.reader.fault("", "say what to submit: 'submit mpi', 'submit single' or 'submit -f FILE'");
  }
  return read_submit(in, std::move(command));
}

Invocation read_run(Reading& in) {
  constexpr size_t kSuffix = 6;
  const std::string name = "run-" + base::random_name(in.random, kSuffix);
  RunCommand command;
  command.spec = read_run_spec(in.arguments, in.caller, name, in.reader);
  command.idempotency_key = in.idempotency_key();
  command.look = in.look();
  return command;
}

Invocation read_logs(Reading& in) {
  LogsCommand command{.name = in.name(), .query = {}, .look = in.look()};
  command.query.follow = in.reader.has("--follow");
  if (in.reader.has("--task")) command.query.task = in.reader.text("--task");
  command.query.since = in.reader.moment("--since", in.caller.now);
  if (in.reader.has("--tail")) {
    command.query.tail = in.reader.number("--tail", 0);
    if (*command.query.tail < 0) in.reader.fault("--tail", "is negative");
  }
  return command;
}

Invocation read_delete(Reading& in) {
  return DeleteCommand{.names = in.names(),
                       .ignore_missing = in.reader.has("--ignore-missing"),
                       .force = in.reader.has("--force")};
}

Invocation read_server(Reading& in) {
  ServerCommand command{.options = {}, .stop = in.reader.has("--stop")};
  if (in.reader.has("--state-dir")) {
    const std::filesystem::path folder(in.caller.folder);
    command.options.state_folder = (folder / in.reader.text("--state-dir")).lexically_normal();
  }
  if (in.reader.has("--idle-exit")) {
    command.options.idle_exit = in.reader.duration("--idle-exit", {});
  }
  command.options.ready_fd = in.reader.number("--ready-fd", -1);
  return command;
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

struct Entry {
  std::string_view path;
  Reader read;
};

constexpr std::array<Entry, 13> kReaders{{
    {"run", read_run},
    {"submit", read_submit_file},
    {"submit mpi", [](Reading& in) { return read_submit_kind(in, job::Kind::kMpi); }},
    {"submit single", [](Reading& in) { return read_submit_kind(in, job::Kind::kSingle); }},
    {"list",
     [](Reading& in) -> Invocation {
       return ListCommand{in.output({"table", "json", "yaml", "names"})};
     }},
    {"get",
     [](Reading& in) -> Invocation {
       return GetCommand{.name = in.name(), .output = in.output()};
     }},
    {"logs", read_logs},
    {"stop",
     [](Reading& in) -> Invocation {
       return StopCommand{
           .names = in.names(), .now = in.reader.has("--now"), .output = in.output()};
     }},
    {"delete", read_delete},
    {"server", read_server},
    {"version", [](Reading& in) -> Invocation { return VersionCommand{in.output()}; }},
    {"completion", read_completion},
    {"help", read_help},
}};

std::string joined(const std::vector<std::string>& path) {
  std::string text;
  for (const std::string& word : path) text += (text.empty() ? "" : " ") + word;
  return text;
}

Invocation read_root(Reading& in) {
  if (in.reader.has("--version")) return VersionCommand{};
  return HelpCommand{.path = {}, .asked = false};
}

Invocation read(Reading& in) {
  const std::string path = joined(in.arguments.path);
  for (const Entry& entry : kReaders) {
    if (entry.path == path) return entry.read(in);
  }
  return read_root(in);
}

}  // namespace

Result<Invocation> parse_invocation(const std::vector<std::string>& words, const Caller& caller,
                                    base::RandomSource& random) {
  const Command root = command_tree();
  const Arguments arguments = sort_arguments(root, words);
  if (arguments.has("--help")) return Invocation(HelpCommand{.path = arguments.path});
  Reading in{root, arguments, caller, random, FlagReader(arguments)};
  Invocation invocation = read(in);
  if (!in.reader.ok()) return usage_error(arguments.path, in.reader.faults());
  return invocation;
}

}  // namespace muster::cli
