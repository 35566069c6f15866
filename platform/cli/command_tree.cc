#include "cli/command_tree.h"

#include <algorithm>

#include "cli/command_parts.h"

namespace muster::cli {

namespace {

std::vector<Command> commands_on_jobs() {
  return {
      {.name = "list",
       .alias = "ls",
       .help = "all jobs",
       .flags = Flags{{.name = "--project",
                       .value = "PROJECT",
                       .help = "only those of this project",
                       .offer = Offer::kProjects},
                      {.name = "--label",
                       .letter = "-l",
                       .value = "NAME[=VALUE]",
                       .help = "only those with this label; repeated, with all of them",
                       .repeats = true}} +
                list_output_flag()},
      {.name = "get",
       .help = "one job: its tasks, how they ended, what happened",
       .positionals = one_of(Offer::kJobs),
       .flags =
           Flags{{.name = "--spec",
                  .help = "what was submitted, as a job file: 'muster submit -f -' takes it"}} +
           whose_job_flag() + output_flag()},
      {.name = "logs",
       .help = "what a job printed",
       .positionals = one_of(Offer::kJobs),
       .flags = Flags{{.name = "--follow", .letter = "-f", .help = "go on until the job has ended"},
                      {.name = "--task", .value = "TASK", .help = "only of this task"},
                      {.name = "--rank", .value = "N", .help = "only of this rank"},
                      {.name = "--grep",
                       .value = "PATTERN",
                       .help = "only lines in which it is found, a regular expression"},
                      {.name = "--since",
                       .value = "TIME",
                       .help = "only from then on: 10m ago, or 2026-01-31T12:00:00Z"},
                      {.name = "--tail", .value = "N", .help = "only the last N lines"}} +
                whose_job_flag() + look_flags() + output_flag({"text", "json"}),
       .example = "muster logs dist -f --rank 1 --grep loss"},
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
       .help = "remove ended jobs with their logs and artifacts",
       .positionals = any_of(Offer::kJobs),
       .flags = Flags{{.name = "--ignore-missing", .help = "a job that is not there is no error"},
                      {.name = "--force", .help = "kill jobs that still run, then remove them"},
                      {.name = "--all-ended", .help = "all of the project that have ended"},
                      {.name = "--ended-before",
                       .value = "TIME",
                       .help = "those of the project that have ended before: 7d ago, or "
                               "2026-01-31T12:00:00Z"},
                      {.name = "--dry-run", .help = "only say which they are"},
                      {.name = "--yes", .letter = "-y", .help = "of many, do not ask first"}} +
                whose_job_flag(),
       .example = "muster delete --ended-before 7d"},
  };
}

std::vector<Command> commands_on_muster() {
  return {
      server(),
      store(),
      doctor(),
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
  for (const auto& group : {commands_on_jobs, commands_on_sessions, commands_on_files,
                            commands_on_metrics, commands_on_the_cluster, commands_on_notifications,
                            commands_on_accounts, commands_on_muster}) {
    for (Command& command : group()) root.commands.push_back(std::move(command));
  }
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
