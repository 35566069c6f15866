#include "cli/command_tree.h"

#include <algorithm>

#include "cli/command_parts.h"

namespace muster::cli {

namespace {

/// What describes a job, whichever its kind.
Flags job_flags() {
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
      {.name = "--folder",
       .value = "DIR",
       .help = "working folder of every task (default: this one)",
       .offer = Offer::kFolders},
      {.name = "--sandbox",
       .value = "KIND",
       .help = "how far tasks are set apart: bubblewrap or none",
       .choices = {"bubblewrap", "none"},
       .offer = Offer::kChoices},
      {.name = "--start-timeout",
       .value = "TIME",
       .help = "how long workers may take to answer (default: 30s)"},
      {.name = "--grace",
       .value = "TIME",
       .help = "from SIGTERM to SIGKILL when it is stopped (default: 10s)"},
      {.name = "--idempotency-key",
       .value = "KEY",
       .help = "submitting again with the same key makes no second job"},
  };
  return resource_flags() + importance_flags() + shared;
}

Flags look_flags() {
  return {{.name = "--timestamps", .help = "begin each line with its time"},
          {.name = "--no-prefix", .help = "print lines without [rank@host] or [task]"}};
}

Flags submit_flags() {
  return Flags{{.name = "--follow", .help = "print the logs until the job has ended"},
               {.name = "--dry-run",
                .help = "say where it would start, or why it would wait; submit nothing"}} +
         look_flags() + output_flag();
}

Command submit_mpi() {
  const Flags shape = {
      {.name = "--workers", .letter = "-n", .value = "N", .help = "how many workers"},
      {.name = "--slots-per-worker", .value = "N", .help = "ranks a worker takes (default: 1)"}};
  return {.name = "mpi",
          .help = "a launcher that runs the command, and workers that it reaches",
          .positionals = new_name(),
          .takes_program = true,
          .flags = shape + elastic_flags() + job_flags() + submit_flags(),
          .example = "muster submit mpi dist --workers 2 --follow -- mpirun -np 2 ./train"};
}

Command submit_single() {
  return {.name = "single",
          .help = "one task, which runs the command",
          .positionals = new_name(),
          .takes_program = true,
          .flags = job_flags() + submit_flags(),
          .example = "muster submit single train --gpus 1 -- python3 train.py"};
}

Command submit() {
  const Flags file = {{.name = "--file",
                       .letter = "-f",
                       .value = "FILE",
                       .help = "the job as a YAML file; - reads standard input",
                       .offer = Offer::kFiles},
                      {.name = "--idempotency-key",
                       .value = "KEY",
                       .help = "submitting again with the same key makes no second job"}};
  return {.name = "submit",
          .help = "hand a job over: mpi, single, or from a file",
          .flags = file + submit_flags(),
          .commands = {submit_mpi(), submit_single()},
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
          .flags = shape + job_flags() + look_flags(),
          .example = "muster run -n 4 -- python3 train.py"};
}

std::vector<Command> commands_on_jobs() {
  return {
      {.name = "list",
       .alias = "ls",
       .help = "all jobs",
       .flags = Flags{{.name = "--project",
                       .value = "PROJECT",
                       .help = "only those of this project",
                       .offer = Offer::kProjects}} +
                list_output_flag()},
      {.name = "get",
       .help = "one job: its tasks, how they ended, what happened",
       .positionals = one_of(Offer::kJobs),
       .flags = whose_job_flag() + output_flag()},
      {.name = "logs",
       .help = "what a job printed",
       .positionals = one_of(Offer::kJobs),
       .flags = Flags{{.name = "--follow", .letter = "-f", .help = "go on until the job has ended"},
                      {.name = "--task", .value = "TASK", .help = "only of this task"},
                      {.name = "--since",
                       .value = "TIME",
                       .help = "only from then on: 10m ago, or 2026-01-31T12:00:00Z"},
                      {.name = "--tail", .value = "N", .help = "only the last N lines"}} +
                whose_job_flag() + look_flags(),
       .example = "muster logs dist -f --tail 100"},
      {.name = "exec",
       .help = "run a program in a task of a running job",
       .positionals = one_of(Offer::kJobs),
       .takes_program = true,
       .flags =
           Flags{{.name = "--task",
                  .value = "TASK",
                  .help = "in this task; else in the one that decides how the job ends"},
                 {.name = "--terminal", .letter = "-t", .help = "with a terminal, for shells"}} +
           whose_job_flag(),
       .example = "muster exec -t dist --task worker-1 -- bash"},
      {.name = "stop",
       .help = "end jobs: SIGTERM, then SIGKILL after their grace",
       .positionals = some_of(Offer::kJobs),
       .flags =
           Flags{{.name = "--now", .help = "SIGKILL at once"}} + whose_job_flag() + output_flag()},
      {.name = "suspend",
       .help = "free the room of jobs and hold them back: SIGTERM, then SIGKILL after their grace",
       .positionals = some_of(Offer::kJobs),
       .flags = whose_job_flag() + output_flag()},
      {.name = "resume",
       .help = "let suspended jobs start again",
       .positionals = some_of(Offer::kJobs),
       .flags = whose_job_flag() + output_flag()},
      {.name = "explain",
       .help = "why a job waits: what it lacks, who holds it, when it may start",
       .positionals = one_of(Offer::kJobs),
       .flags = whose_job_flag() + output_flag()},
      {.name = "events",
       .help = "what happened when, to one job or to all",
       .positionals = maybe_one_of(Offer::kJobs),
       .flags =
           Flags{{.name = "--follow", .letter = "-f", .help = "go on with what happens next"}} +
           whose_job_flag() + output_flag()},
      {.name = "delete",
       .alias = "rm",
       .help = "remove ended jobs with their logs",
       .positionals = some_of(Offer::kJobs),
       .flags = Flags{{.name = "--ignore-missing", .help = "a job that is not there is no error"},
                      {.name = "--force", .help = "kill jobs that still run, then remove them"}} +
                whose_job_flag()},
  };
}

std::vector<Command> commands_on_muster() {
  return {
      server(),
      store(),
      simulate(),
      {.name = "version", .help = "versions of muster and its server", .flags = output_flag()},
      {.name = "completion",
       .help = "a script that teaches a shell to complete muster's commands",
       .positionals = {.name = "SHELL",
                       .least = 1,
                       .most = 1,
                       .choices = {"bash", "zsh", "fish"},
                       .offer = Offer::kChoices},
       .example = "source <(muster completion bash)"},
      {.name = "help",
       .help = "this help, or that of a command",
       .positionals = {.name = "COMMAND", .most = 2}},
  };
}

/// --help is understood everywhere.
void add_help_flag(Command& command) {
  command.flags.push_back({.name = "--help", .letter = "-h", .help = "show this help"});
  for (Command& child : command.commands) add_help_flag(child);
}

}  // namespace

const Flag* Command::find_flag(std::string_view wanted) const {
  const auto found = std::find_if(flags.begin(), flags.end(), [&](const Flag& flag) {
    return flag.name == wanted || (!flag.letter.empty() && flag.letter == wanted);
  });
  return found == flags.end() ? nullptr : &*found;
}

const Command* Command::find_command(std::string_view wanted) const {
  const auto found = std::find_if(commands.begin(), commands.end(), [&](const Command& child) {
    return child.name == wanted || (!child.alias.empty() && child.alias == wanted);
  });
  return found == commands.end() ? nullptr : &*found;
}

Command command_tree() {
  Command root{.name = "muster",
               .help = "Muster gathers the processes of a distributed training job.",
               .flags = {{.name = "--version", .help = "show the version"}},
               .commands = {run_in_foreground(), submit()},
               .example = "muster run -n 4 -- ./train"};
  for (Command& command : commands_on_jobs()) root.commands.push_back(std::move(command));
  for (Command& command : commands_on_the_cluster()) root.commands.push_back(std::move(command));
  for (Command& command : commands_on_accounts()) root.commands.push_back(std::move(command));
  for (Command& command : commands_on_muster()) root.commands.push_back(std::move(command));
  add_context_flag(root);
  add_help_flag(root);
  return root;
}

std::vector<std::string> flag_names(const Command& command) {
  std::vector<std::string> names;
  for (const Flag& flag : command.flags) {
    if (!flag.hidden) names.push_back(flag.name);
  }
  return names;
}

std::vector<std::string> command_names(const Command& command) {
  std::vector<std::string> names;
  for (const Command& child : command.commands) names.push_back(child.name);
  return names;
}

}  // namespace muster::cli
