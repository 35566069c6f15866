// bash, attach, convert: sitting before a job that runs.
#include "cli/command_parts.h"

namespace muster::cli {

namespace {

Flags wait_flag() {
  return {{.name = "--wait",
           .value = "TIME",
           .help = "how long to wait for a job that does not run yet (default: 5m)"}};
}

Command bash() {
  return {.name = "bash",
          .help = "open a shell in a running job",
          .positionals = one_of(Offer::kJobs),
          .flags = task_flag("in this task; else in the one that decides how the job ends") +
                   wait_flag() + whose_job_flag(),
          .example = "muster bash lab"};
}

Command attach() {
  const Flags own = {
      {.name = "--no-stdin", .help = "only look on: nothing that is typed goes there"},
      {.name = "--from-start", .help = "with what it has printed so far"},
      {.name = "--detach-keys",
       .value = "KEYS",
       .help = "the keys that leave it (default: ctrl-p,ctrl-q)"}};
  return {.name = "attach",
          .help = "sit before the program of a running job: see, type, leave, come back",
          .positionals = one_of(Offer::kJobs),
          .flags = task_flag("what this task runs; else the one that decides how the job ends") +
                   own + wait_flag() + whose_job_flag(),
          .example = "muster attach debug"};
}

Command convert() {
  const Flags own = {
      {.name = "--list", .help = "only show what was typed in the job's shells"},
      {.name = "--line", .value = "N", .help = "the command of this number in the list"},
      {.name = "--command", .value = "TEXT", .help = "this command, by sh -c"},
      {.name = "--name",
       .value = "NEW",
       .help = "name of the job that runs unattended (default: NAME-train)"},
      {.name = "--keep", .help = "do not end the interactive job"},
      {.name = "--end-first",
       .help = "end it at once, so that the new job can have its resources; else once that runs"},
      {.name = "--wait",
       .value = "TIME",
       .help = "how long to wait until the new job runs (default: 5m)"},
      {.name = "--yes", .letter = "-y", .help = "do not ask"},
      {.name = "--idempotency-key",
       .value = "KEY",
       .help = "converting again with the same key makes no second job"}};
  return {.name = "convert",
          .help = "make an interactive job one that runs what was typed in it, unattended",
          .positionals = one_of(Offer::kJobs),
          .flags = own + task_flag("what was typed in this task; else in the one that decides") +
                   whose_job_flag(),
          .example = "muster convert lab --name lab-train"};
}

}  // namespace

std::vector<Command> commands_on_sessions() {
  return {bash(), attach(), convert()};
}

}  // namespace muster::cli
