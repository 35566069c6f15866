// project, node, queue, top: the commands on what jobs share.
#include <utility>

#include "cli/command_parts.h"

namespace muster::cli {

namespace {

/// What a project may use. --limit and --limit-gpus are one flag: the long name goes with
/// --limit-cpus, the short one is what people type.
Flags project_flags() {
  return {
      {.name = "--gpus",
       .value = "N",
       .help =
           "GPUs that it can always claim: 2, 0.5, unlimited, or, of the project 'default', rest: "
           "what no other project was promised (default: 0)"},
      {.name = "--cpus", .value = "N", .help = "CPU cores that it can always claim"},
      {.name = "--memory", .value = "SIZE", .help = "memory that it can always claim, as in 64G"},
      {.name = "--limit", .value = "N", .help = "GPUs that it never exceeds, or unlimited"},
      {.name = "--limit-gpus", .value = "N", .help = "the same as --limit", .hidden = true},
      {.name = "--limit-cpus", .value = "N", .help = "CPU cores that it never exceeds"},
      {.name = "--limit-memory", .value = "SIZE", .help = "memory that it never exceeds"},
      {.name = "--weight",
       .value = "W",
       .help = "its part of what others leave unused; 0: none of it (default: 1)"},
      {.name = "--pool",
       .value = "POOL",
       .help = "the quota, limit and weight given are for this node pool alone",
       .repeats = true},
      {.name = "--parent",
       .value = "PROJECT",
       .help = "the project that it is a part of; \"\" for none",
       .offer = Offer::kProjects},
      {.name = "--priority",
       .value = "N",
       .help = "larger ones are first served of what others leave unused (default: 100)"},
      {.name = "--reclaim-min-runtime",
       .value = "TIME",
       .help = "how long its jobs are safe from other projects (default: 0s)"},
      {.name = "--preempt-min-runtime",
       .value = "TIME",
       .help = "how long its jobs are safe from its own more important ones (default: 0s)"},
  };
}

Command project() {
  Command project{
      .name = "project",
      .help = "projects, their quotas and members: create, list, get, set, delete, use ...",
      .commands =
          {
              {.name = "create",
               .help = "add a project",
               .positionals = new_name(),
               .flags = project_flags() + output_flag(),
               .example = "muster project create team-a --gpus 2"},
              {.name = "list",
               .alias = "ls",
               .help = "all projects as a tree: quotas, fair shares, what runs and waits",
               .flags = list_output_flag()},
              {.name = "get",
               .help = "one project: its quota in each pool and what it uses",
               .positionals = one_of(Offer::kProjects),
               .flags = output_flag()},
              {.name = "set",
               .help = "change what is given of a project, and leave the rest",
               .positionals = one_of(Offer::kProjects),
               .flags = project_flags() +
                        Flags{{.name = "--no-pool",
                               .value = "POOL",
                               .help = "this node pool has no quota of its own any more",
                               .repeats = true}} +
                        output_flag(),
               .example = "muster project set team-a --gpus 4 --limit unlimited"},
              {.name = "delete",
               .alias = "rm",
               .help = "remove projects that have no jobs left",
               .positionals = some_of(Offer::kProjects),
               .flags = {{.name = "--ignore-missing",
                          .help = "a project that is not there is no error"}}},
              {.name = "use",
               .help = "submit to this project from now on; without a name: say which it is",
               .positionals = maybe_one_of(Offer::kProjects),
               .example = "muster project use team-a"},
          },
      .example = "muster project create team-a --gpus 2 --limit 4"};
  for (Command& command : commands_on_members()) project.commands.push_back(std::move(command));
  return project;
}

Command node() {
  return {.name = "node",
          .help = "the machines: list, get, cordon, uncordon, drain",
          .commands = {
              {.name = "list",
               .alias = "ls",
               .help = "all nodes: what they have, and how much of it is taken",
               .flags = list_output_flag()},
              {.name = "get",
               .help = "one node: its GPUs and who holds each",
               .positionals = one_of(Offer::kNodes),
               .flags = output_flag()},
              {.name = "cordon",
               .help = "let nothing new start on nodes; what runs there goes on",
               .positionals = some_of(Offer::kNodes),
               .flags = output_flag()},
              {.name = "uncordon",
               .help = "let jobs start on nodes again",
               .positionals = some_of(Offer::kNodes),
               .flags = output_flag()},
              {.name = "drain",
               .help = "cordon nodes, and have what runs there start again elsewhere",
               .positionals = some_of(Offer::kNodes),
               .flags = output_flag(),
               .example = "muster node drain gpu-7"},
          }};
}

}  // namespace

std::vector<Command> commands_on_the_cluster() {
  return {
      project(),
      node(),
      {.name = "queue",
       .help = "the jobs that wait, in the order in which they are served, and why",
       .flags = list_output_flag()},
      {.name = "top",
       .help = "nodes, projects and jobs, live; q leaves",
       .flags = {{.name = "--interval",
                  .value = "TIME",
                  .help = "how often it looks again (default: 1s)"},
                 {.name = "--once", .help = "print it once and leave"}}},
  };
}

}  // namespace muster::cli
