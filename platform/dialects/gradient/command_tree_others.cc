#include "cli/command/command.h"
#include "dialects/gradient/command_tree_parts.h"

namespace muster::dialects::gradient {

namespace {

const cli::Flag kProjectId{.name = "--id",
                           .value = "PROJECT",
                           .help = "the project's ID, which is its name",
                           .offer = cli::Offer::kProjects};

cli::Command projects() {
  return {.name = "projects",
          .help = "Manage projects",
          .commands = {
              {.name = "create",
               .help = "Create project",
               .flags = {{.name = "--name", .value = "NAME", .help = "of the new project"},
                         {.name = "--repositoryName", .value = "NAME", .help = "is not kept"},
                         {.name = "--repositoryUrl", .value = "URL", .help = "is not kept"},
                         {.name = "--tag", .value = "TAG", .help = "is not kept", .repeats = true},
                         {.name = "--tags", .value = "TAG,TAG", .help = "is not kept"}}},
              {.name = "list", .help = "List projects"},
              {.name = "details", .help = "Show one project", .flags = {kProjectId}},
              {.name = "delete",
               .help = "Delete a project whose experiments have all ended",
               .flags = {kProjectId}}}};
}

cli::Command clusters() {
  return {.name = "clusters",
          .help = "Look at the machines there are",
          .commands = {
              {.name = "list", .help = "List clusters: the pools of nodes", .flags = page_flags()},
              {.name = "machineTypes",
               .help = "Look at machine types",
               .commands = {{.name = "list", .help = "List machine types"}}}}};
}

cli::Flags whose_artifacts() {
  return {
      {.name = "--id",
       .value = "ID",
       .help = "of the experiment, or of one of its jobs: they share a folder",
       .offer = cli::Offer::kJobs},
      {.name = "--files", .value = "PATH", .help = "only this file, or what is in this folder"}};
}

/// `get` as Gradient's documents have it, `download` as its later versions.
cli::Command job_artifacts_get(const std::string& name) {
  return {.name = name,
          .help = "Fetch artifacts",
          .flags = whose_artifacts() + cli::Flags{{.name = "--destination",
                                                   .value = "FOLDER",
                                                   .help = "where they go (default: ID-artifacts)",
                                                   .offer = cli::Offer::kFolders}},
          .example = "gradient jobs artifacts " + name + " --id train --destination out"};
}

cli::Command job_artifacts() {
  return {
      .name = "artifacts",
      .help = "Look at what jobs have left in /artifacts",
      .commands = {{.name = "list",
                    .help = "List artifacts",
                    .flags = whose_artifacts() + cli::Flags{{.name = "--size",
                                                             .letter = "-s",
                                                             .help = "with their sizes in bytes"}}},
                   job_artifacts_get("get"),
                   job_artifacts_get("download")}};
}

cli::Command jobs() {
  return {.name = "jobs",
          .help = "Look at the jobs of experiments, one for each machine",
          .commands = {
              {.name = "list",
               .help = "List jobs",
               .flags = {{.name = "--project",
                          .value = "PROJECT",
                          .help = "only those of this project",
                          .offer = cli::Offer::kProjects},
                         {.name = "--projectId",
                          .value = "PROJECT",
                          .help = "the same: a project's name is its ID",
                          .offer = cli::Offer::kProjects},
                         {.name = "--experimentId",
                          .value = "ID",
                          .help = "only those of this experiment",
                          .offer = cli::Offer::kJobs},
                         {.name = "--tag",
                          .value = "TAG",
                          .help = "only those of experiments with this tag",
                          .repeats = true}}},
              {.name = "logs",
               .help = "List job logs",
               .positionals = switch_value(),
               .flags =
                   cli::Flags{{.name = "--id",
                               .value = "ID",
                               .help = "of the job, as in 'jobs list'; or that of an experiment"}} +
                   log_flags(),
               .example = "gradient jobs logs --id train/worker-0"},
              job_artifacts()}};
}

cli::Command secrets() {
  const cli::Positionals owner{.name = "project",
                               .least = 1,
                               .most = 1,
                               .choices = {"project", "team", "cluster"},
                               .offer = cli::Offer::kChoices};
  const cli::Flag id{.name = "--id",
                     .value = "PROJECT",
                     .help = "whose (default: the project in use)",
                     .offer = cli::Offer::kProjects};
  const cli::Flag name{.name = "--name", .value = "NAME", .help = "of the secret"};
  return {
      .name = "secrets",
      .help = "Manage secrets",
      .commands = {
          {.name = "set",
           .help = "Set secret",
           .positionals = owner,
           .flags = {id,
                     name,
                     {.name = "--value",
                      .value = "TEXT",
                      .help = "better left out: it is asked for, or read from a pipe"}},
           .example = "gradient secrets set project --id vision --name TOKEN"},
          {.name = "list", .help = "List secrets", .positionals = owner, .flags = {id}},
          {.name = "delete", .help = "Delete secret", .positionals = owner, .flags = {id, name}}}};
}

}  // namespace

std::vector<cli::Command> other_commands() {
  return {projects(),
          clusters(),
          jobs(),
          secrets(),
          {.name = "apiKey",
           .help = "Keep the key by which servers know you",
           .positionals = {.name = "KEY", .most = 1}},
          {.name = "logout", .help = "Forget the key"},
          {.name = "version", .help = "Show the version"}};
}

}  // namespace muster::dialects::gradient
