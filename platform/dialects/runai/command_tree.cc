#include "dialects/runai/command_tree.h"

#include <limits>
#include <string>
#include <utility>

#include "cli/command/command.h"

namespace muster::dialects::runai {

namespace {

constexpr size_t kAny = std::numeric_limits<size_t>::max();

cli::Positionals named(std::string name, size_t least, size_t most,
                       cli::Offer offer = cli::Offer::kNothing) {
  return {.name = std::move(name), .least = least, .most = most, .choices = {}, .offer = offer};
}

cli::Positionals one_job() {
  return named("NAME", 1, 1, cli::Offer::kJobs);
}

cli::Flag all_projects_flag() {
  return {.name = "--all-projects", .letter = "-A", .help = "jobs of all projects"};
}

cli::Flag pod_flag() {
  return {.name = "--pod",
          .value = "POD",
          .help = "pod of the job (default: the pod that decides the job's result)"};
}

std::vector<std::string> listing_formats() {
  return {"table", "json", "yaml", "names"};
}

cli::Command jobs_listing() {
  return {.name = "jobs",
          .alias = "job",
          .help = "list jobs",
          .flags = cli::Flags{all_projects_flag()} + cli::output_flag(listing_formats())};
}

cli::Command projects_listing(std::string name, std::string alias) {
  return {.name = std::move(name),
          .alias = std::move(alias),
          .help = "list projects",
          .flags = cli::output_flag(listing_formats())};
}

cli::Command clusters_listing(std::string name, std::string alias) {
  return {.name = std::move(name),
          .alias = std::move(alias),
          .help = "list clusters, which are contexts of muster"};
}

cli::Command list() {
  return {.name = "list",
          .alias = "ls",
          .help = "list jobs, nodes, projects or clusters",
          .flags = jobs_listing().flags,
          .commands = {jobs_listing(),
                       {.name = "nodes", .alias = "node", .help = "list nodes"},
                       projects_listing("projects", "project"),
                       clusters_listing("clusters", "cluster"),
                       {.name = "templates", .alias = "template", .help = "not supported"}},
          .example = "runai list -p team-a"};
}

cli::Flags description_flags() {
  return {{.name = "--output",
           .letter = "-o",
           .value = "FORMAT",
           .help = "output format: json, yaml or wide",
           .choices = {"json", "yaml", "wide"},
           .offer = cli::Offer::kChoices},
          {.name = "--events",
           .letter = "-e",
           .help = "has no effect: events are always shown",
           .hidden = true}};
}

cli::Command describe() {
  return {.name = "describe",
          .help = "show a job or a node",
          .commands = {
              {.name = "job",
               .alias = "jobs",
               .help = "show a job: its pods, its events, why it waits",
               .positionals = one_job(),
               .flags = description_flags()},
              {.name = "node",
               .alias = "nodes",
               .help = "show a node",
               .positionals = named("NAME", 1, 1)},
              {.name = "template", .help = "not supported", .positionals = named("NAME", 0, 1)}}};
}

cli::Command logs() {
  return {.name = "logs",
          .help = "print the logs of a job's pods, merged",
          .positionals = one_job(),
          .flags = {{.name = "--follow", .letter = "-f", .help = "continue until the job ends"},
                    {.name = "--since",
                     .value = "TIME",
                     .help = "only lines newer than this: 5s, 2m, 3h"},
                    {.name = "--since-time",
                     .value = "MOMENT",
                     .help = "only lines after this time: 2026-01-31T12:00:00Z"},
                    {.name = "--tail",
                     .letter = "-t",
                     .value = "LINES",
                     .help = "only the last N lines; -1: all"},
                    {.name = "--timestamps", .help = "begin each line with its time"},
                    pod_flag()},
          .example = "runai logs dist -f"};
}

cli::Command for_jobs(std::string name, std::string help, std::string all) {
  return {.name = std::move(name),
          .help = std::move(help),
          .positionals = named("NAME", 0, kAny, cli::Offer::kJobs),
          .flags = {{.name = "--all", .letter = "-A", .help = std::move(all)}}};
}

cli::Command exec() {
  return {
      .name = "exec",
      .help = "run a command in a pod of a job",
      .positionals = one_job(),
      .takes_program = true,
      .flags = {{.name = "--stdin", .letter = "-i", .help = "send standard input to the program"},
                {.name = "--tty", .letter = "-t", .help = "allocate a terminal"},
                pod_flag()},
      .example = "runai exec dist nvidia-smi -L"};
}

cli::Command attach_words() {
  return {
      .name = "attach",
      .help = "attach to the program of a pod: see its output, type input; ctrl-p ctrl-q detaches",
      .positionals = one_job(),
      .flags = {{.name = "--no-stdin", .help = "do not send input"},
                {.name = "--no-tty", .help = "use no terminal"},
                pod_flag()}};
}

cli::Command port_forward() {
  return {.name = "port-forward",
          .help = "forward local ports to ports of a pod",
          .positionals = one_job(),
          .flags = {{.name = "--port",
                     .value = "[LOCAL:]REMOTE",
                     .help = "ports to forward; repeat for more",
                     .repeats = true},
                    {.name = "--address",
                     .value = "ADDRESS",
                     .help = "address to listen on (default: localhost, this machine only)"},
                    {.name = "--pod-running-timeout",
                     .value = "TIME",
                     .help = "how long to wait until the pod runs (default: no wait)"},
                    pod_flag()},
          .example = "runai port-forward dist --port 8080:8888"};
}

cli::Command top() {
  return {
      .name = "top",
      .help = "show the allocated resources of nodes or jobs",
      .commands = {{.name = "node",
                    .alias = "nodes",
                    .help = "show the allocated resources of nodes",
                    .positionals = named("NAME", 0, 1),
                    .flags = {{.name = "--details", .letter = "-d", .help = "also show each GPU"}}},
                   {.name = "job",
                    .alias = "jobs",
                    .help = "show the allocated resources of running jobs",
                    .flags = {all_projects_flag()}}}};
}

cli::Command config() {
  return {.name = "config",
          .help = "choose the project or the cluster in use",
          .commands = {{.name = "project",
                        .help = "choose the project in use",
                        .positionals = named("NAME", 1, 1, cli::Offer::kProjects)},
                       {.name = "cluster",
                        .help = "choose the cluster in use",
                        .positionals = named("NAME", 1, 1)}}};
}

/// The names of these commands before `config` and `list`.
cli::Command project() {
  return {.name = "project",
          .help = "choose the project in use, or list projects",
          .commands = {{.name = "set",
                        .help = "choose the project in use",
                        .positionals = named("NAME", 1, 1, cli::Offer::kProjects)},
                       projects_listing("list", "ls")}};
}

cli::Command cluster() {
  return {
      .name = "cluster",
      .help = "choose the cluster in use, or list clusters",
      .commands = {
          {.name = "set", .help = "choose the cluster in use", .positionals = named("NAME", 1, 1)},
          clusters_listing("list", "ls")}};
}

std::vector<cli::Command> other_commands() {
  return {
      list(),
      describe(),
      {.name = "get",
       .help = "show a job; the same as describe job",
       .positionals = one_job(),
       .flags = description_flags()},
      logs(),
      for_jobs("delete", "stop jobs and delete them", "all jobs of the project"),
      for_jobs("suspend", "suspend jobs and release their resources", "all jobs of the project"),
      for_jobs("resume", "resume suspended jobs", "all suspended jobs of the project"),
      {.name = "bash",
       .help = "open a shell in a pod of a job",
       .positionals = one_job(),
       .flags = {pod_flag()}},
      exec(),
      attach_words(),
      port_forward(),
      top(),
      config(),
      project(),
      cluster(),
      {.name = "login", .help = "show how to log in"},
      {.name = "logout", .help = "end the session with the cluster"},
      {.name = "whoami", .help = "show the user you are logged in as"},
      {.name = "version",
       .help = "show the version",
       .flags = {{.name = "--short", .help = "only print the version number"}}},
      {.name = "completion",
       .help = "print a completion script for a shell",
       .positionals = {.name = "SHELL",
                       .least = 1,
                       .most = 1,
                       .choices = {"bash", "zsh", "fish"},
                       .offer = cli::Offer::kChoices}},
      {.name = "template", .help = "not supported", .positionals = named("WORD", 0, kAny)},
      {.name = "update", .help = "not supported"},
  };
}

void add_common_flags(cli::Command& command) {
  command.flags = command.flags + common_flags();
  command.flags.push_back({.name = "--help", .letter = "-h", .help = "show this help"});
  for (cli::Command& child : command.commands) add_common_flags(child);
}

}  // namespace

std::vector<cli::Flag> common_flags() {
  return {{.name = "--project",
           .letter = "-p",
           .value = "NAME",
           .help = "project to use instead of the one in use",
           .offer = cli::Offer::kProjects},
          {.name = "--loglevel",
           .value = "LEVEL",
           .help = "has no effect",
           .choices = {"info", "debug", "warn", "error"},
           .offer = cli::Offer::kChoices}};
}

cli::Command command_tree() {
  cli::Command root{.name = "runai",
                    .help = "Run:AI's commands for Muster.",
                    .commands = submit_commands(),
                    .lacking = {"training", "workspace"},
                    .example = "runai submit-mpi dist --processes=2 -g 1 -i IMAGE"};
  for (cli::Command& command : other_commands()) root.commands.push_back(std::move(command));
  add_common_flags(root);
  return root;
}

}  // namespace muster::dialects::runai
