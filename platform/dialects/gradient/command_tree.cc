#include "dialects/gradient/command_tree.h"

#include <utility>

#include "cli/command/command.h"

namespace muster::dialects::gradient {

namespace {

const cli::Flag kId{.name = "--id",
                    .value = "ID",
                    .help = "ID of the experiment, or the name of its job",
                    .offer = cli::Offer::kJobs};

cli::Flags tag_flags(const std::string& what) {
  return {{.name = "--tag", .value = "TAG", .help = what, .repeats = true},
          {.name = "--tags", .value = "TAG,TAG", .help = "comma-separated list of the same"}};
}

cli::Command list() {
  return {.name = "list",
          .help = "List experiments",
          .flags = cli::Flags{{.name = "--projectId",
                               .letter = "-p",
                               .value = "PROJECT",
                               .help = "only items of this project",
                               .offer = cli::Offer::kProjects,
                               .repeats = true},
                              {.name = "--tag",
                               .value = "TAG",
                               .help = "only experiments with this tag",
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
                               .help = "former name of --id",
                               .hidden = true}} +
                   log_flags(),
          .example = "gradient experiments logs --id train --follow true"};
}

cli::Command tags() {
  return {.name = "tags",
          .help = "Manage experiment tags",
          .commands = {{.name = "add",
                        .help = "Add tags to experiment",
                        .flags = cli::Flags{kId} + tag_flags("tag to add")},
                       {.name = "remove",
                        .help = "Remove tags from experiment",
                        .flags = cli::Flags{kId} + tag_flags("tag to remove")}}};
}

cli::Flags span_flags() {
  return {{.name = "--interval", .value = "TIME", .help = "time between two values (default: 30s)"},
          {.name = "--start",
           .value = "TIME",
           .help = "only values after this time: 2026-01-31, or 2026-01-31T12:00:00 (UTC)"},
          {.name = "--end", .value = "TIME", .help = "until then"}};
}

cli::Command metrics() {
  const cli::Flag any{.name = "--metric",
                      .value = "METRIC",
                      .help = "metric to print (default: cpuPercentage and memoryUsage)",
                      .repeats = true};
  cli::Flag built_in = any;
  built_in.help = "metric to stream (default: cpuPercentage and memoryUsage)";
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
                        .flags = {kId, {.name = "--logs", .help = "print its logs until it ends"}}},
                       {.name = "stop", .help = "Stop an experiment", .flags = {kId}},
                       {.name = "delete",
                        .help = "Delete an experiment with its logs, and stop it first",
                        .flags = {kId}},
                       logs(),
                       tags(),
                       metrics()},
          .lacking = {"hyperparameters"}};
}

bool has_flag(const cli::Command& command, std::string_view name) {
  return command.find_flag(name) != nullptr;
}

/// Adds --help to every command, and the common flags to every command that connects to a server.
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
  return {
      {.name = "--apiKey", .value = "KEY", .help = "key for this command: a token of the server"},
      {.name = "--optionsFile",
       .value = "FILE",
       .help = "read options from this YAML file; the command line overrides them",
       .offer = cli::Offer::kFiles},
      {.name = "--createOptionsFile",
       .value = "FILE",
       .help = "write the options to this file and exit",
       .offer = cli::Offer::kFiles}};
}

cli::Flags page_flags() {
  return {{.name = "--limit",
           .letter = "-l",
           .value = "N",
           .help = "number of items to list at a time (default: 20)"},
          {.name = "--offset",
           .letter = "-o",
           .value = "N",
           .help = "number of newest items to skip (default: 0)"}};
}

cli::Flags log_flags() {
  return {
      {.name = "--line",
       .value = "N",
       .help = "number of the first line to print (default: 0, the first line)"},
      {.name = "--limit", .value = "N", .help = "maximum number of lines (default: 10000)"},
      {.name = "--follow", .help = "print new lines until the job ends; true or false may follow"}};
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
                    .help = "Gradient's commands for Muster.",
                    .flags = {{.name = "--version", .letter = "-v", .help = "show the version"}},
                    .commands = {experiments()},
                    .lacking = {"notebooks", "models", "deployments"},
                    .example = "gradient experiments list"};
  for (cli::Command& command : other_commands()) root.commands.push_back(std::move(command));
  add_flags(root);
  return root;
}

// experiments create and run, with every flag that Gradient's own program has or had.

namespace {

cli::Flags what_it_is() {
  return {{.name = "--name", .value = "NAME", .help = "name of the experiment"},
          {.name = "--projectId",
           .value = "PROJECT",
           .help = "project of the experiment (default: the project in use)",
           .offer = cli::Offer::kProjects},
          {.name = "--clusterId", .value = "CLUSTER", .help = "has no effect: the server decides"},
          {.name = "--tag", .value = "TAG", .help = "a tag", .repeats = true},
          {.name = "--tags", .value = "TAG,...", .help = "several tags"}};
}

cli::Flags workspace_flags() {
  return {
      {.name = "--workspace",
       .value = "PATH|URL",
       .help =
           "files of the experiment: a folder, a .zip file, the URL of a git repository, or none",
       .offer = cli::Offer::kFolders},
      {.name = "--workspaceRef", .value = "REF", .help = "branch, tag or commit of the repository"},
      {.name = "--workspaceUsername",
       .value = "USER",
       .help = "user name for a private repository"},
      {.name = "--workspacePassword", .value = "PASSWORD", .help = "the same; or a token"},
      {.name = "--ignoreFiles",
       .value = "PATTERN,...",
       .help = "files to leave out, in addition to .gitignore"},
      {.name = "--workspaceUrl", .value = "URL", .help = "--workspace, formerly", .hidden = true},
      {.name = "--workspaceArchive",
       .value = "PATH",
       .help = "--workspace, formerly",
       .hidden = true},
      {.name = "--workingDirectory",
       .value = "PATH",
       .help = "working folder, relative to the workspace (default: the workspace)"},
      {.name = "--artifactDirectory",
       .value = "PATH",
       .help = "path of the artifact folder (default: /artifacts)"}};
}

/// Combined by position: the first value of each flag belongs to the first data set.
cli::Flags dataset_flags() {
  const auto part = [](std::string name, std::string value, std::string help) {
    return cli::Flag{.name = std::move(name),
                     .value = std::move(value),
                     .help = std::move(help),
                     .repeats = true};
  };
  return {
      part("--datasetUri", "PATH", "folder to mount read-only at /data/NAME"),
      part("--datasetName", "NAME", "name of the data set (default: the folder's name)"),
      part("--datasetId", "ID", "is not supported"),
      part("--datasetAwsAccessKeyId", "ID", "has no effect: a folder needs no key"),
      part("--datasetAwsSecretAccessKey", "KEY", "the same"),
      part("--datasetAwsEndpoint", "URL", "the same"),
      part("--datasetVersionId", "ID", "has no effect: a folder has no versions"),
      part("--datasetEtag", "ETAG", "the same"),
      part("--datasetVolumeKind", "KIND", "has no effect: dynamic or shared"),
      part("--datasetVolumeSize", "SIZE", "has no effect: the volume is a folder without a size")};
}

cli::Flags run_flags() {
  return {
      {.name = "--experimentEnv",
       .value = "JSON",
       .help = "environment variables as JSON: '{\"EPOCHS\": 5, \"KEY\": \"secret:NAME\"}'"},
      {.name = "--isPreemptible",
       .help = "has no effect: every experiment may run over quota, and may be evicted"},
      {.name = "--ports", .value = "PORTS", .help = "stored, without effect: HOST:CONTAINER"},
      {.name = "--modelType",
       .value = "TYPE",
       .help = "stored, without effect: Tensorflow, ONNX, Custom"},
      {.name = "--modelPath",
       .value = "PATH",
       .help = "value of the variable PS_MODEL_PATH; requires --modelType"},
      {.name = "--tensorboard", .value = "ID", .help = "is not supported", .value_optional = true}};
}

cli::Flags shared_flags() {
  return what_it_is() + workspace_flags() + dataset_flags() + run_flags();
}

/// --workerContainer ... of a role; the flags of a single node have no role in their names.
cli::Flags role_flags(const std::string& role, const std::string& title) {
  const auto flag = [&](const std::string& name, std::string value, std::string help) {
    std::string spelled = role.empty() ? name : role + static_cast<char>(name[0] - 'a' + 'A');
    if (!role.empty()) spelled += name.substr(1);
    return cli::Flag{.name = "--" + spelled, .value = std::move(value), .help = std::move(help)};
  };
  const std::string of = title.empty() ? "" : " of " + title;
  return {flag("container", "IMAGE", "image" + of),
          flag("machineType", "TYPE", "machine" + of + ": p3.2xlarge, V100"),
          flag("command", "TEXT", "command, run by the shell" + of),
          flag("containerUser", "USER", "user in the container (default: the image's user)"),
          flag("registryUsername", "USER", "user name for the image's registry"),
          flag("registryPassword", "PASSWORD",
               "password for the image's registry; stored as a secret of the project"),
          flag("registryUrl", "URL", "registry address (default: from the image's name)")};
}

cli::Flag count_flag(const std::string& name, const std::string& help) {
  return {.name = name, .value = "N", .help = help};
}

cli::Flags multinode_flags() {
  const cli::Flags type = {
      {.name = "--experimentType",
       .value = "TYPE",
       .help = "GRPC or MPI",
       .choices = {"GRPC", "MPI"},
       .offer = cli::Offer::kChoices},
      {.name = "--experimentTypeId", .value = "N", .help = "formerly: 2, 3", .hidden = true}};
  const cli::Flags former = {{.name = "--vpc", .help = "does nothing", .hidden = true},
                             {.name = "--parameterServerRegistryContainerUser",
                              .value = "USER",
                              .help = "--parameterServerContainerUser, formerly",
                              .hidden = true}};
  return type + role_flags("worker", "workers") +
         cli::Flags{
             count_flag("--workerCount", "number of workers; for GRPC including the chief")} +
         role_flags("master", "the master (MPI)") +
         cli::Flags{count_flag("--masterCount", "1 (MPI)")} +
         role_flags("parameterServer", "parameter servers (GRPC)") +
         cli::Flags{count_flag("--parameterServerCount", "how many (GRPC)")} + former;
}

std::vector<cli::Command> kinds(const std::string& verb, const cli::Flags& more) {
  const std::string line = "gradient experiments " + verb;
  return {
      {.name = "singlenode",
       .help = "run the command in one container",
       .flags = role_flags("", "") + shared_flags() +
                cli::Flags{{.name = "--vpc", .help = "does nothing", .hidden = true}} + more +
                common_flags(),
       .example = line + " singlenode --name train --container python:3 --machineType C3 --command "
                         "'python main.py' --workspace ."},
      {.name = "multinode",
       .help = "run a master and workers (MPI), or a TensorFlow cluster (GRPC)",
       .flags = multinode_flags() + shared_flags() + more + common_flags(),
       .example = line + " multinode --name dist --experimentType MPI --workerContainer IMAGE "
                         "--workerMachineType V100 --workerCount 2 --masterContainer IMAGE "
                         "--masterMachineType V100 --masterCommand 'mpirun python main.py' "
                         "--masterCount 1 --workspace ."}};
}

}  // namespace

cli::Command create_command() {
  return {.name = "create",
          .help = "register an experiment; 'experiments start' starts it",
          .commands = kinds("create", {})};
}

cli::Command run_command() {
  const cli::Flags more = {{.name = "--no-logs", .help = "start it without following its logs"}};
  return {.name = "run",
          .help = "create an experiment, start it and print its logs",
          .commands = kinds("run", more)};
}

namespace {

const cli::Flag kProjectId{.name = "--id",
                           .value = "PROJECT",
                           .help = "the project's ID, which is its name",
                           .offer = cli::Offer::kProjects};

cli::Command projects() {
  return {
      .name = "projects",
      .help = "Manage projects",
      .commands = {
          {.name = "create",
           .help = "Create project",
           .flags = {{.name = "--name", .value = "NAME", .help = "name of the new project"},
                     {.name = "--repositoryName", .value = "NAME", .help = "has no effect"},
                     {.name = "--repositoryUrl", .value = "URL", .help = "has no effect"},
                     {.name = "--tag", .value = "TAG", .help = "has no effect", .repeats = true},
                     {.name = "--tags", .value = "TAG,TAG", .help = "has no effect"}}},
          {.name = "list", .help = "List projects"},
          {.name = "details", .help = "Show one project", .flags = {kProjectId}},
          {.name = "delete",
           .help = "Delete a project whose experiments have all ended",
           .flags = {kProjectId}}}};
}

cli::Command clusters() {
  return {.name = "clusters",
          .help = "List clusters and machine types",
          .commands = {{.name = "list",
                        .help = "List clusters, which are pools of nodes",
                        .flags = page_flags()},
                       {.name = "machineTypes",
                        .help = "Manage machine types",
                        .commands = {{.name = "list", .help = "List machine types"}}}}};
}

cli::Flags artifact_job_flags() {
  return {{.name = "--id",
           .value = "ID",
           .help = "ID of the experiment, or of one of its jobs, which share its artifacts",
           .offer = cli::Offer::kJobs},
          {.name = "--files",
           .value = "PATH",
           .help = "only this file, or the content of this folder"}};
}

/// `get` as in Gradient's documents, `download` as in its later versions.
cli::Command job_artifacts_get(const std::string& name) {
  return {.name = name,
          .help = "Fetch artifacts",
          .flags = artifact_job_flags() +
                   cli::Flags{{.name = "--destination",
                               .value = "FOLDER",
                               .help = "destination folder (default: ID-artifacts)",
                               .offer = cli::Offer::kFolders}},
          .example = "gradient jobs artifacts " + name + " --id train --destination out"};
}

cli::Command job_artifacts() {
  return {
      .name = "artifacts",
      .help = "Manage the artifacts of jobs, from /artifacts",
      .commands = {{.name = "list",
                    .help = "List artifacts",
                    .flags = artifact_job_flags() + cli::Flags{{.name = "--size",
                                                                .letter = "-s",
                                                                .help = "show sizes in bytes"}}},
                   job_artifacts_get("get"),
                   job_artifacts_get("download")},
      .lacking = {"destroy"}};
}

cli::Command jobs() {
  return {
      .name = "jobs",
      .help = "Manage the jobs of experiments, one for each task",
      .commands = {
          {.name = "list",
           .help = "List jobs",
           .flags = {{.name = "--project",
                      .value = "PROJECT",
                      .help = "only items of this project",
                      .offer = cli::Offer::kProjects},
                     {.name = "--projectId",
                      .value = "PROJECT",
                      .help = "the same as --project: a project's name is its ID",
                      .offer = cli::Offer::kProjects},
                     {.name = "--experimentId",
                      .value = "ID",
                      .help = "only jobs of this experiment",
                      .offer = cli::Offer::kJobs},
                     {.name = "--tag",
                      .value = "TAG",
                      .help = "only jobs of experiments with this tag",
                      .repeats = true}}},
          {.name = "logs",
           .help = "List job logs",
           .positionals = switch_value(),
           .flags = cli::Flags{{.name = "--id",
                                .value = "ID",
                                .help = "ID of the job, as in 'jobs list', or of an experiment"}} +
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
                     .help = "owner name of the secrets (default: the project in use)",
                     .offer = cli::Offer::kProjects};
  const cli::Flag name{.name = "--name", .value = "NAME", .help = "name of the secret"};
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
                      .help = "value of the secret; a prompt or a pipe is safer"}},
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
           .help = "Store the key that identifies you to servers",
           .positionals = {.name = "KEY", .most = 1}},
          {.name = "logout", .help = "Remove the stored key"},
          {.name = "version", .help = "Show the version"}};
}

}  // namespace muster::dialects::gradient
