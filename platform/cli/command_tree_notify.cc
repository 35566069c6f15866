// notify: who is told when a job begins and ends.
#include "cli/command_parts.h"

namespace muster::cli {

namespace {

Flags notify_project_flag() {
  return {{.name = "--project",
           .value = "PROJECT",
           .help = "whose jobs are meant (default: the project in use)",
           .offer = Offer::kProjects}};
}

Positionals one_id() {
  return {.name = "ID", .least = 1, .most = 1};
}

Command notify_add() {
  return {.name = "add",
          .help = "have an address told by a signed request when jobs begin or end; prints the key",
          .positionals = {.name = "URL", .least = 1, .most = 1},
          .flags = notify_project_flag() +
                   Flags{{.name = "--on",
                          .value = "WHAT,...",
                          .help = "of started, requeued, succeeded, failed, stopped; or all "
                                  "(default: succeeded,failed,stopped)",
                          .repeats = true},
                         {.name = "--job",
                          .value = "PATTERN",
                          .help = "only of jobs whose name is of this pattern, as in 'train-*'"},
                         {.name = "--label",
                          .letter = "-l",
                          .value = "NAME[=VALUE]",
                          .help = "only of jobs that have this label",
                          .repeats = true},
                         {.name = "--with-lines",
                          .help = "send the last lines of a job that failed, too: they may hold "
                                  "what is not for everybody"}} +
                   output_flag(),
          .example = "muster notify add https://hooks.example.com/muster --on failed"};
}

Command notify() {
  return {
      .name = "notify",
      .help = "who is told when jobs begin and end: add, list, remove, rotate, test, dead, retry",
      .commands = {
          notify_add(),
          {.name = "list",
           .alias = "ls",
           .help = "who is told of what",
           .flags = notify_project_flag() + list_output_flag()},
          {.name = "remove",
           .alias = "rm",
           .help = "tell it no more",
           .positionals = {.name = "ID", .least = 1, .most = some_of(Offer::kNothing).most},
           .flags = notify_project_flag() +
                    Flags{{.name = "--ignore-missing",
                           .help = "a subscription that is not there is no error"}}},
          {.name = "rotate",
           .help = "make a new key; the old one signs nothing any more",
           .positionals = one_id(),
           .flags = notify_project_flag() + output_flag()},
          {.name = "test",
           .help = "send a ping now, and show what is answered",
           .positionals = one_id(),
           .flags = notify_project_flag() + output_flag()},
          {.name = "dead",
           .help = "what could not be delivered, why, and since when",
           .flags = notify_project_flag() + list_output_flag()},
          {.name = "retry",
           .help = "try dead letters again",
           .positionals = {.name = "ID", .least = 0, .most = some_of(Offer::kNothing).most},
           .flags = notify_project_flag() + Flags{{.name = "--all", .help = "all of them"}}},
      }};
}

}  // namespace

std::vector<Command> commands_on_notifications() {
  return {notify()};
}

}  // namespace muster::cli
