// convert: turns commands typed in an interactive job into a job that runs unattended.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <iostream>
#include <map>

#include "api/terminal.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/common/typed_input.h"
#include "cli/connection/connection.h"
#include "cli/connection/contexts.h"
#include "cli/sessions/sessions.h"
#include "cli/spec/spec_flags.h"
#include "http/websocket.h"
#include "job/spec.h"
#include "words/sentence.h"

namespace muster::cli::sessions {

namespace {

void check_convert(const ConvertCommand& command, Reading& in) {
  const int choices = (command.line ? 1 : 0) + (command.command ? 1 : 0) + (command.list ? 1 : 0);
  if (choices > 1) in.reader.fault("", "give only one of --list, --line and --command");
  if (command.keep && command.end_first) in.reader.fault("--end-first", "contradicts --keep");
  if (command.line && *command.line < 1) in.reader.fault("--line", "counts from 1");
  if (command.command && command.command->empty()) in.reader.fault("--command", "is empty");
}

Call read_convert(Reading& in) {
  ConvertCommand command{.name = in.name("job"),
                         .project = in.project_of_job(),
                         .task = in.reader.text("--task"),
                         .new_name = in.reader.text("--name"),
                         .idempotency_key = in.idempotency_key(),
                         .list = in.reader.has("--list"),
                         .yes = in.reader.has("--yes"),
                         .keep = in.reader.has("--keep"),
                         .end_first = in.reader.has("--end-first"),
                         .wait = in.reader.duration("--wait", kUsualWait)};
  if (in.reader.has("--line")) command.line = in.reader.number("--line", 1);
  if (in.reader.has("--command")) command.command = in.reader.text("--command");
  check_convert(command, in);
  return command;
}

}  // namespace

Command convert_command() {
  const Flags own = {
      {.name = "--list", .help = "list the commands typed in the job's shells"},
      {.name = "--line", .value = "N", .help = "run the command with this number in the list"},
      {.name = "--command", .value = "TEXT", .help = "run this command with sh -c"},
      {.name = "--name", .value = "NEW", .help = "name of the new job (default: NAME-train)"},
      {.name = "--keep", .help = "keep the interactive job running"},
      {.name = "--end-first",
       .help = "end the interactive job first, so that the new job can use its resources (default: "
               "when the new job runs)"},
      {.name = "--wait",
       .value = "TIME",
       .help = "how long to wait until the new job runs (default: 5m)"},
      {.name = "--yes", .letter = "-y", .help = "do not ask for confirmation"},
      {.name = "--idempotency-key",
       .value = "KEY",
       .help = "submit no second job if this key was used before"}};
  return {
      .name = "convert",
      .help = "submit a job that runs a command typed in an interactive job",
      .read = read_convert,
      .positionals = one_of(Offer::kJobs),
      .flags =
          own +
          task_flag("task whose shells to read (default: the task that decides the job's result)") +
          job_project_flag(),
      .example = "muster convert lab --name lab-train"};
}

namespace {

using base::Error;
using base::ErrorCode;

constexpr size_t kMostListed = 50;
/// A command that is misspelled, refused or lacks a file fails within this time.
constexpr std::chrono::seconds kFirstMoments{2};

/// The chosen command line, and its working folder.
struct Choice {
  std::vector<std::string> command;
  std::string text;
  std::string folder;    ///< empty: the job's folder
  bool as_root = false;  ///< root's shells allow Open MPI to run as root (launch/shell_files.h)
};

/// The commands that the shells of a task have recorded.
struct Typed {
  std::vector<TypedCommand> commands;
  bool as_root = false;  ///< the task runs as root
};

/// More than a shell records (launch/shell_files.h).
constexpr size_t kMostTyped = 1 << 20;

/// The complete output of a program that reads no input.
Result<std::string> output_of(Connection& connection, const std::string& name,
                              const api::ExecRequest& request) {
  MUSTER_TRY(const auto socket,
             connection.call([&](api::Client& client) { return client.exec(name, request); }));
  std::string output;
  while (true) {
    MUSTER_TRY(const auto message, socket->receive({}));
    if (!message) return output;
    if (message->kind != http::WebSocket::Kind::kBinary) continue;
    if (message->data.starts_with(api::kOutputByte)) output += message->data.substr(1);
    if (output.size() > kMostTyped)
      return output;  // the task owns the file and may write anything into it
  }
}

Result<Typed> typed_in(Connection& connection, const ConvertCommand& command) {
  MUSTER_TRY(const auto target, await_running(connection, command.name, command.task, {}));
  // The format is described in launch/shell_files.h. A record begins with octal 036.
  const std::string script =
      "id -u 2> /dev/null; cat \"$MUSTER_GENERATED/bash/commands\" 2> /dev/null";
  MUSTER_TRY(const std::string printed,
             output_of(connection, command.name,
                       {.command = {"/bin/sh", "-c", script}, .task = target->task.name}));
  const size_t records = std::min(printed.find('\036'), printed.size());
  return Typed{.commands = parse_typed_commands(std::string_view(printed).substr(records)),
               .as_root = printed.substr(0, records) == "0\n"};
}

Error nothing_typed(const std::string& name) {
  return {.code = ErrorCode::kNotFound,
          .what = "no command was typed in a shell of job '" + name + "'",
          .advice = "muster bash " + name + " opens a shell; or give a command: --command 'TEXT'"};
}

Error no_candidate(const std::string& name) {
  return {
      .code = ErrorCode::kNotFound,
      .what = "no command typed in job '" + name + "' looks like a training",
      .advice =
          "muster convert " + name +
          " --list lists the commands, and --line N runs one; or give a command: --command 'TEXT'"};
}

Result<Choice> choose(const Typed& from, const ConvertCommand& command) {
  const std::vector<TypedCommand>& typed = from.commands;
  if (typed.empty()) return nothing_typed(command.name);
  size_t index = 0;
  if (command.line) {
    index = static_cast<size_t>(*command.line) - 1;
    if (index >= typed.size()) {
      return Error{.code = ErrorCode::kNotFound,
                   .what = "there is no command " + std::to_string(*command.line) +
                           "; the last one is " + std::to_string(typed.size()),
                   .advice = "muster convert " + command.name + " --list shows them"};
    }
  } else {
    const auto candidate = candidate_of(typed);
    if (!candidate) return no_candidate(command.name);
    index = *candidate;
  }
  const TypedCommand& chosen = typed[index];
  return Choice{.command = {"bash", "-c", chosen.text},
                .text = chosen.text,
                .folder = chosen.folder,
                .as_root = from.as_root};
}

/// The same job without its terminal.
job::JobSpec unattended(job::JobSpec spec, const Choice& choice) {
  spec.command = choice.command;
  spec.replaces_entrypoint = true;
  if (!choice.folder.empty()) {
    spec.folder = choice.folder;
    job::forget_inherited_folder(spec);
  }
  spec.scheduling.purpose = job::Purpose::kTrain;
  spec.scheduling.preemptible.reset();
  spec.input = spec.terminal = spec.held = false;
  spec.annotations.erase(kTypedOfRunai);
  if (choice.as_root) spec::let_root_run_open_mpi(spec);
  return spec;
}

void print_what_stays_behind(const job::JobSpec& spec) {
  for (const job::Volume& volume : spec.volumes) {
    if (volume.kind != job::Volume::Kind::kTree) continue;
    std::cerr << "muster: " << safe_lines(volume.target)
              << " contains the files sent with the interactive job, without later changes\n";
  }
  if (!spec.scheduling.time_limit) return;
  std::cerr << "muster: the new job has the time limit of the interactive job\n";
}

enum class Consent { kYes, kNo, kInterrupted };

Result<Consent> ask_consent(const ConvertCommand& command, const Choice& choice,
                            const job::JobSpec& spec) {
  if (command.yes) return Consent::kYes;
  if (::isatty(STDIN_FILENO) != 1) {
    return Error{
        .code = ErrorCode::kInvalid,
        .what = "this command needs a confirmation to run job '" + spec.name + "': " + choice.text,
        .advice = "confirm with --yes, because standard input is not a terminal"};
  }
  std::cerr << "In " << safe_lines(spec.folder) << ":\n  " << safe_lines(choice.text) << "\n";
  Interrupts interrupts;
  const std::string question = "Run this as job '" + spec.name + "'" +
                               (command.keep ? "" : ", and end '" + command.name + "'") +
                               "? [Y/n] ";
  MUSTER_TRY(const auto answer, ask(STDIN_FILENO, question, Echo::kOn, interrupts));
  if (!answer) return Consent::kInterrupted;
  const bool agrees = answer->empty() || *answer == "y" || *answer == "Y" || *answer == "yes";
  return agrees ? Consent::kYes : Consent::kNo;
}

/// Submits with the given name. Without a given name, the server appends the first number that makes
/// the name unique.
Result<job::Job> submit_converted(Connection& connection, const job::JobSpec& spec,
                                  const ConvertCommand& command) {
  const api::Client::SubmitOptions options{.name_suffix = command.new_name.empty()};
  return connection.call(
      [&](api::Client& client) { return client.submit(spec, command.idempotency_key, options); });
}

Result<Choice> choice_of(Connection& connection, const ConvertCommand& command, const job::Job& job,
                         const Hooks& hooks) {
  if (command.command) {
    MUSTER_TRY(const Caller caller, this_caller(hooks.context));
    return Choice{.command = {"sh", "-c", *command.command},
                  .text = *command.command,
                  .as_root = caller.is_root || !job.spec.image.empty()};
  }
  auto typed = typed_in(connection, command);
  if (typed) return choose(*typed, command);
  if (typed.error().code != ErrorCode::kConflict) return typed.error();
  Error error = std::move(typed).error();
  error.advice = "the commands typed in it were deleted with it; give a command: --command 'TEXT'";
  return error;
}

Result<int> list(Connection& connection, const ConvertCommand& command) {
  MUSTER_TRY(const Typed typed, typed_in(connection, command));
  if (typed.commands.empty()) return nothing_typed(command.name);
  MUSTER_CHECK(show(typed_commands_view(typed.commands, kMostListed)));
  return kExitDone;
}

/// Follows the new job through its first moments. If the job cannot run, the session continues as
/// it is.
class FirstMoments {
 public:
  FirstMoments(Connection& connection, const job::Job& made, const std::string& session)
      : connection_(connection), job_(made), session_(session) {}

  enum class End { kRuns, kFailed, kTimeout, kInterrupted };

  Result<End> await(std::chrono::milliseconds patience) {
    MUSTER_TRY(const WatchEnd start, watch(patience, [this] { return runs_or_ended(); }));
    if (start == WatchEnd::kInterrupted) return End::kInterrupted;
    if (start == WatchEnd::kBoundReached) return End::kTimeout;
    if (has_failed()) return End::kFailed;
    MUSTER_TRY(const WatchEnd end, watch(kFirstMoments, [this] { return has_ended_now(); }));
    if (end == WatchEnd::kInterrupted) return End::kInterrupted;
    return has_failed() ? End::kFailed : End::kRuns;
  }

  const job::Job& job() const { return job_; }

 private:
  Result<WatchEnd> watch(std::chrono::milliseconds bound, const std::function<bool()>& is_enough) {
    return watch_jobs(connection_, {.project = job_.spec.project,
                                    .names = {job_.spec.name},
                                    .on_job =
                                        [&](const std::string&, const job::Job* job) {
                                          is_gone_ = job == nullptr;
                                          if (job != nullptr) job_ = *job;
                                          show_reason();
                                          return !is_enough();
                                        },
                                    .bound = bound,
                                    .interrupts = &interrupts_});
  }

  bool has_ended_now() const { return is_gone_ || job::is_final(job_.phase); }
  bool runs_or_ended() const { return has_ended_now() || job_.phase == job::Phase::kRunning; }
  bool has_failed() const {
    return is_gone_ || (job::is_final(job_.phase) && job_.phase != job::Phase::kSucceeded);
  }

  void show_reason() {
    const std::string reason = words::sentence(job_.reason);
    if (is_gone_ || job_.phase != job::Phase::kQueued || reason == shown_reason_) return;
    shown_reason_ = reason;
    if (shown_reason_.empty()) return;
    std::cerr << "muster: job '" << job_.spec.name << "' is Queued: " << safe_lines(shown_reason_)
              << "\n  job '" << session_ << "' continues until then; end it now with: muster stop "
              << session_ << std::endl;
  }

  Connection& connection_;
  Interrupts interrupts_;
  job::Job job_;
  std::string session_;
  std::string shown_reason_;
  bool is_gone_ = false;
};

Result<void> end_interactive_job(Connection& connection, const std::string& name) {
  MUSTER_TRY(const job::Job ended,
             connection.call([&](api::Client& client) { return client.stop(name, false); }));
  std::cerr << "muster: job '" << ended.spec.name << "' is being stopped" << std::endl;
  return {};
}

/// Ends the session when the new job runs.
Result<int> hand_over(Connection& connection, const ConvertCommand& command, const job::Job& made) {
  FirstMoments moments(connection, made, command.name);
  MUSTER_TRY(const FirstMoments::End end, moments.await(command.wait));
  const job::Job& job = moments.job();
  switch (end) {
    case FirstMoments::End::kRuns:
      MUSTER_CHECK(end_interactive_job(connection, command.name));
      return kExitDone;
    case FirstMoments::End::kTimeout:
      return Error{.code = ErrorCode::kTimeout,
                   .what = "job '" + job.spec.name + "' does not run yet: it is " +
                           std::string(job::to_string(job.phase)) + words::after_colon(job.reason),
                   .advice = "it keeps waiting, and job '" + command.name +
                             "' continues; stop that one with: muster stop " + command.name};
    case FirstMoments::End::kInterrupted:
      std::cerr << "muster: jobs '" << job.spec.name << "' and '" << command.name
                << "' continue; end the interactive job with: muster stop " << command.name
                << std::endl;
      return kExitInterrupted;
    case FirstMoments::End::kFailed:
      break;
  }
  const std::string why = failure_text(job);
  std::cerr << (why.empty() ? "muster: job '" + job.spec.name + "' was removed\n" : safe_lines(why))
            << "muster: job '" << command.name << "' continues" << std::endl;
  return kExitFailed;
}

}  // namespace

Result<int> execute(const ConvertCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  if (command.list) return list(connection, command);
  MUSTER_TRY(const job::Job job,
             connection.call([&](api::Client& client) { return client.get(command.name); }));
  MUSTER_TRY(const Choice choice, choice_of(connection, command, job, hooks));
  job::JobSpec spec = unattended(job.spec, choice);
  spec.name = command.new_name.empty() ? job.spec.name + "-train" : command.new_name;
  MUSTER_TRY(const Consent consent, ask_consent(command, choice, spec));
  if (consent != Consent::kYes) {
    std::cerr << "muster: no job was submitted" << std::endl;
    return consent == Consent::kInterrupted ? kExitInterrupted : kExitFailed;
  }
  print_what_stays_behind(spec);
  MUSTER_TRY(const job::Job made, submit_converted(connection, spec, command));
  std::cerr << "muster: job '" << made.spec.name << "' submitted; follow it: muster logs -f "
            << made.spec.name << std::endl;
  const bool ends_session = !command.keep && !job::is_final(job.phase);
  if (ends_session && command.end_first)
    MUSTER_CHECK(end_interactive_job(connection, command.name));
  MUSTER_CHECK(show(made.spec.name + "\n"));
  if (!ends_session || command.end_first) return kExitDone;
  return hand_over(connection, command, made);
}

namespace {

constexpr char kRecord = '\036';
constexpr char kField = '\037';
constexpr int kInterrupted = 130;
constexpr std::chrono::seconds kLong{10};
constexpr size_t kShownOfCommand = 100;

/// A record of a shell: a command's start or its end.
struct Note {
  std::string shell;
  std::string number;
  std::optional<int> exit_code;
  int64_t time = 0;
  std::string folder;
  std::string text;
};

std::optional<Note> note_of(std::string_view record) {
  std::array<std::string, 6> fields;
  for (size_t i = 0; i + 1 < fields.size(); ++i) {
    const size_t end = record.find(kField);
    if (end == std::string_view::npos) return std::nullopt;
    fields[i] = record.substr(0, end);
    record.remove_prefix(end + 1);
  }
  if (!record.ends_with('\n')) return std::nullopt;  // the shell is still writing it
  record.remove_suffix(1);
  const auto time = base::number_of<int64_t>(fields[3]);
  const auto code = base::number_of<int>(fields[2]);
  if (!time || (!code && fields[2] != "-") || record.empty()) return std::nullopt;
  return Note{.shell = fields[0],
              .number = fields[1],
              .exit_code = code,
              .time = *time,
              .folder = fields[4],
              .text = std::string(record)};
}

/// The first word that is a program: after NAME=VALUE words, and after programs such as sudo that
/// only run another program.
std::string program_of(std::string_view text) {
  constexpr std::array<std::string_view, 6> kRunners{"time", "nohup", "exec",
                                                     "env",  "nice",  "command"};
  for (const std::string& word : base::split(text, ' ')) {
    const size_t equals = word.find('=');
    const bool is_assignment = equals != std::string::npos && word.find('/') > equals;
    const bool runs_another = std::find(kRunners.begin(), kRunners.end(), word) != kRunners.end();
    if (word.empty() || is_assignment || runs_another) continue;
    const size_t slash = word.rfind('/');
    return slash == std::string::npos ? word : word.substr(slash + 1);
  }
  return "";
}

/// The commands in a line: "cd x && mpirun y" has two.
std::vector<std::string> programs_in(std::string_view text) {
  std::vector<std::string> programs;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(";&|\n"), text.size());
    if (std::string program = program_of(text.substr(0, end)); !program.empty()) {
      programs.push_back(std::move(program));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return programs;
}

template <size_t Count>
bool is_one_of(const std::string& word, const std::array<std::string_view, Count>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_training_launcher(const std::string& program) {
  constexpr std::array<std::string_view, 10> kLaunchers{
      "mpirun",  "mpiexec", "mpiexec.hydra", "horovodrun", "torchrun",
      "orterun", "prterun", "deepspeed",     "accelerate", "julia"};
  return is_one_of(program, kLaunchers) || program.starts_with("python");
}

bool is_for_people(const TypedCommand& command) {
  constexpr std::array<std::string_view, 22> kForPeople{
      "vi", "vim", "nvim", "nano", "emacs", "less",   "more", "man",   "top", "htop", "bash",
      "sh", "zsh", "ssh",  "tmux", "watch", "screen", "tail", "sleep", "pip", "exit", "logout"};
  const std::vector<std::string> programs = programs_in(command.text);
  return programs.empty() || is_one_of(programs.front(), kForPeople);
}

bool went_well(const TypedCommand& command) {
  return !command.exit_code || *command.exit_code == 0 || *command.exit_code == kInterrupted;
}

std::string end_of(const TypedCommand& command) {
  if (!command.exit_code) return "-";
  return *command.exit_code == kInterrupted ? "Ctrl-C" : std::to_string(*command.exit_code);
}

std::string took_words(const TypedCommand& command) {
  if (!command.exit_code) return "-";
  const auto took = command.took.count();
  if (took < 60) return std::to_string(took) + "s";
  if (took < 3600) return std::to_string(took / 60) + "m" + std::to_string(took % 60) + "s";
  return std::to_string(took / 3600) + "h" + std::to_string(took / 60 % 60) + "m";
}

/// The times come from the task and may be arbitrary.
std::chrono::seconds seconds_between(int64_t from, int64_t to) {
  int64_t between = 0;
  const bool is_one = from >= 0 && to >= from && !__builtin_sub_overflow(to, from, &between);
  return std::chrono::seconds(is_one ? between : 0);
}

}  // namespace

std::vector<TypedCommand> parse_typed_commands(std::string_view records) {
  std::vector<TypedCommand> commands;
  // By shell and number: the index of the command and its start time.
  std::map<std::pair<std::string, std::string>, std::pair<size_t, int64_t>> begun;
  std::vector<std::string> pieces = base::split(records, kRecord);
  // The text before the first mark is the end of a truncated record.
  for (size_t i = 1; i < pieces.size(); ++i) {
    auto note = note_of(pieces[i]);
    if (!note) continue;
    const auto key = std::pair(note->shell, note->number);
    const auto found = begun.find(key);
    if (note->exit_code && found != begun.end()) {
      TypedCommand& command = commands[found->second.first];
      command.exit_code = note->exit_code;
      command.took = seconds_between(found->second.second, note->time);
      begun.erase(found);
      continue;
    }
    if (!note->exit_code) begun[key] = {commands.size(), note->time};
    commands.push_back({.text = std::move(note->text),
                        .folder = std::move(note->folder),
                        .exit_code = note->exit_code});
  }
  return commands;
}

bool launches(const TypedCommand& command) {
  const std::vector<std::string> programs = programs_in(command.text);
  return std::any_of(programs.begin(), programs.end(), is_training_launcher);
}

std::optional<size_t> candidate_of(const std::vector<TypedCommand>& commands) {
  const auto last_that = [&](const auto& holds) -> std::optional<size_t> {
    for (size_t i = commands.size(); i > 0; --i) {
      if (went_well(commands[i - 1]) && holds(commands[i - 1])) return i - 1;
    }
    return std::nullopt;
  };
  if (const auto found = last_that(launches)) return found;
  return last_that([](const TypedCommand& command) {
    return (!command.exit_code || command.took >= kLong) && !is_for_people(command);
  });
}

std::string typed_commands_view(const std::vector<TypedCommand>& commands, size_t most) {
  Table table({{.title = "LINE", .right = true},
               {.title = "EXIT", .right = true},
               {.title = "TOOK", .right = true},
               {.title = "FOLDER"},
               {.title = "COMMAND"}});
  const size_t first = commands.size() > most ? commands.size() - most : 0;
  for (size_t i = first; i < commands.size(); ++i) {
    const TypedCommand& command = commands[i];
    const bool is_long = command.text.size() > kShownOfCommand;
    table.add({std::to_string(i + 1), end_of(command), took_words(command), command.folder,
               command.text.substr(0, kShownOfCommand) + (is_long ? "..." : "")});
  }
  return table.to_string();
}

}  // namespace muster::cli::sessions
