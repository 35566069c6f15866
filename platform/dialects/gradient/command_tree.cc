#include "dialects/gradient/command_tree.h"

#include <utility>

#include "cli/command/command.h"
#include "dialects/gradient/command_tree_parts.h"

namespace muster::dialects::gradient {

namespace {

const cli::Flag kId{.name = "--id",
                    .value = "ID",
                    .help = "of the experiment: its ID or its job's name",
                    .offer = cli::Offer::kJobs};

cli::Flags tag_flags(const std::string& what) {
  return {{.name = "--tag", .value = "TAG", .help = what, .repeats = true},
          {.name = "--tags", .value = "TAG,TAG", .help = "the same, separated by commas"}};
}

cli::Command list() {
  return {.name = "list",
          .help = "List experiments",
          .flags = cli::Flags{{.name = "--projectId",
                               .letter = "-p",
                               .value = "PROJECT",
                               .help = "only those of this project",
                               .offer = cli::Offer::kProjects,
                               .repeats = true},
                              {.name = "--tag",
                               .value = "TAG",
                               .help = "only those with this tag",
                               .repeats = true}} +
                   page_flags(),
          .example = "gradient experiments list --projectId vision --tag nightly"};
}

cli::Command logs() {
  return {.name = "logs",
          .help = "List experiment logs",
          .positionals = switch_value(),
          .flags = cli::Flags{kId,
                              {.name = "--experimentId",
                               .value = "ID",
                               .help = "an older name of --id",
                               .hidden = true}} +
                   log_flags(),
          .example = "gradient experiments logs --id train --follow true"};
}

cli::Command tags() {
  return {.name = "tags",
          .help = "Manage experiment tags",
          .commands = {{.name = "add",
                        .help = "Add tags to experiment",
                        .flags = cli::Flags{kId} + tag_flags("a tag to add")},
                       {.name = "remove",
                        .help = "Remove tags from experiment",
                        .flags = cli::Flags{kId} + tag_flags("a tag to remove")}}};
}

cli::Flags span_flags() {
  return {{.name = "--interval", .value = "TIME", .help = "between two values (default: 30s)"},
          {.name = "--start",
           .value = "TIME",
           .help = "from then on: 2026-01-31, or 2026-01-31T12:00:00 (UTC)"},
          {.name = "--end", .value = "TIME", .help = "until then"}};
}

cli::Command metrics() {
  const cli::Flag any{.name = "--metric",
                      .value = "METRIC",
                      .help = "one to get (default: cpuPercentage and memoryUsage)",
                      .repeats = true};
  cli::Flag built_in = any;
  built_in.help = "one to stream (default: cpuPercentage and memoryUsage)";
  built_in.choices = built_in_metrics();
  built_in.offer = cli::Offer::kChoices;
  return {.name = "metrics",
          .help = "Read experiment metrics",
          .commands = {{.name = "get",
                        .help = "Get experiment metrics",
                        .flags = cli::Flags{kId, any} + span_flags()},
                       {.name = "list",
                        .help = "List the custom metrics of an experiment",
                        .flags = cli::Flags{kId} + span_flags()},
                       {.name = "stream",
                        .help = "Watch experiment metrics",
                        .flags = {kId, built_in, span_flags().front()}}}};
}

cli::Command experiments() {
  return {.name = "experiments",
          .help = "Manage experiments",
          .commands = {create_command(),
                       run_command(),
                       list(),
                       {.name = "details", .help = "Show one experiment", .flags = {kId}},
                       {.name = "start",
                        .help = "Start an experiment that was created",
                        .flags = {kId, {.name = "--logs", .help = "print its logs as they come"}}},
                       {.name = "stop", .help = "Stop an experiment", .flags = {kId}},
                       {.name = "delete",
                        .help = "Delete an experiment with its logs, and stop it first",
                        .flags = {kId}},
                       logs(),
                       tags(),
                       metrics()}};
}

bool has_flag(const cli::Command& command, std::string_view name) {
  return command.find_flag(name) != nullptr;
}

/// --help everywhere; on every command that asks a server something, the common flags.
void add_flags(cli::Command& command) {
  const bool is_local =
      command.name == "apiKey" || command.name == "logout" || command.name == "version";
  if (command.commands.empty() && !is_local && !has_flag(command, "--apiKey")) {
    command.flags = std::move(command.flags) + common_flags();
  }
  if (!has_flag(command, "--help")) {
    command.flags.push_back({.name = "--help", .letter = "-h", .help = "show this help"});
  }
  for (cli::Command& child : command.commands) add_flags(child);
}

}  // namespace

std::vector<cli::Flag> common_flags() {
  return {{.name = "--apiKey", .value = "KEY", .help = "a token of the server, for this time only"},
          {.name = "--optionsFile",
           .value = "FILE",
           .help = "take options from this YAML file; those given here win",
           .offer = cli::Offer::kFiles},
          {.name = "--createOptionsFile",
           .value = "FILE",
           .help = "write the options to this file, and do nothing else",
           .offer = cli::Offer::kFiles}};
}

cli::Flags page_flags() {
  return {
      {.name = "--limit", .letter = "-l", .value = "N", .help = "how many at a time (default: 20)"},
      {.name = "--offset",
       .letter = "-o",
       .value = "N",
       .help = "leave out so many of the newest (default: 0)"}};
}

cli::Flags log_flags() {
  return {{.name = "--line", .value = "N", .help = "from this line on (default: 0, the first)"},
          {.name = "--limit", .value = "N", .help = "so many lines at most (default: 10000)"},
          {.name = "--follow", .help = "print them as they come; true or false may follow"}};
}

cli::Positionals switch_value() {
  return {
      .name = "true|false", .most = 1, .choices = {"true", "false"}, .offer = cli::Offer::kChoices};
}

std::vector<std::string> built_in_metrics() {
  return {"cpuPercentage", "memoryUsage", "gpuMemoryFree",  "gpuMemoryUsed",
          "gpuPowerDraw",  "gpuTemp",     "gpuUtilization", "gpuMemoryUtilization"};
}

cli::Command command_tree() {
  cli::Command root{.name = "gradient",
                    .help = "Gradient's commands, over Muster.",
                    .flags = {{.name = "--version", .letter = "-v", .help = "show the version"}},
                    .commands = {experiments()},
                    .example = "gradient experiments list"};
  for (cli::Command& command : other_commands()) root.commands.push_back(std::move(command));
  add_flags(root);
  return root;
}

}  // namespace muster::dialects::gradient
