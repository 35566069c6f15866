// experiments create and run, with every flag that Gradient's own program has or once had.
#include <utility>

#include "cli/command/command.h"
#include "dialects/gradient/command_tree.h"

namespace muster::dialects::gradient {

namespace {

cli::Flags what_it_is() {
  return {{.name = "--name", .value = "NAME", .help = "what the experiment is called"},
          {.name = "--projectId",
           .value = "PROJECT",
           .help = "the project it belongs to (default: the one in use)",
           .offer = cli::Offer::kProjects},
          {.name = "--clusterId", .value = "CLUSTER", .help = "does nothing: the server decides"},
          {.name = "--tag", .value = "TAG", .help = "a tag", .repeats = true},
          {.name = "--tags", .value = "TAG,...", .help = "several tags"}};
}

cli::Flags workspace_flags() {
  return {
      {.name = "--workspace",
       .value = "PATH|URL",
       .help = "files for it: a folder, a .zip, the URL of a git repository, or none",
       .offer = cli::Offer::kFolders},
      {.name = "--workspaceRef", .value = "REF", .help = "branch, tag or commit of the repository"},
      {.name = "--workspaceUsername", .value = "USER", .help = "for a repository that asks"},
      {.name = "--workspacePassword", .value = "PASSWORD", .help = "the same; or a token"},
      {.name = "--ignoreFiles",
       .value = "PATTERN,...",
       .help = "files of a folder that stay here, beside those of .gitignore"},
      {.name = "--workspaceUrl", .value = "URL", .help = "--workspace, formerly", .hidden = true},
      {.name = "--workspaceArchive",
       .value = "PATH",
       .help = "--workspace, formerly",
       .hidden = true},
      {.name = "--workingDirectory",
       .value = "PATH",
       .help = "working folder, seen from the workspace (default: the workspace)"},
      {.name = "--artifactDirectory",
       .value = "PATH",
       .help = "where the artifacts folder is found (default: /artifacts)"}};
}

/// Zipped by their position: the first of each belongs to the first data set.
cli::Flags dataset_flags() {
  const auto part = [](std::string name, std::string value, std::string help) {
    return cli::Flag{.name = std::move(name),
                     .value = std::move(value),
                     .help = std::move(help),
                     .repeats = true};
  };
  return {part("--datasetUri", "PATH", "a folder that is found read-only at /data/NAME"),
          part("--datasetName", "NAME", "its name there (default: the folder's)"),
          part("--datasetId", "ID", "is not served here"),
          part("--datasetAwsAccessKeyId", "ID", "does nothing: a folder asks for no key"),
          part("--datasetAwsSecretAccessKey", "KEY", "the same"),
          part("--datasetAwsEndpoint", "URL", "the same"),
          part("--datasetVersionId", "ID", "does nothing: a folder has no versions"),
          part("--datasetEtag", "ETAG", "the same"),
          part("--datasetVolumeKind", "KIND", "does nothing: dynamic or shared"),
          part("--datasetVolumeSize", "SIZE", "does nothing: it is as large as it is")};
}

cli::Flags run_flags() {
  return {{.name = "--experimentEnv",
           .value = "JSON",
           .help = "variables of every container: '{\"EPOCHS\": 5, \"KEY\": \"secret:NAME\"}'"},
          {.name = "--isPreemptible", .help = "may be evicted for others"},
          {.name = "--ports", .value = "PORTS", .help = "kept, and nothing else: HOST:CONTAINER"},
          {.name = "--modelType",
           .value = "TYPE",
           .help = "kept, and nothing else: Tensorflow, ONNX, Custom"},
          {.name = "--modelPath",
           .value = "PATH",
           .help = "what PS_MODEL_PATH says; needs --modelType"},
          {.name = "--tensorboard",
           .value = "ID",
           .help = "is not served here",
           .value_optional = true}};
}

cli::Flags shared_flags() {
  return what_it_is() + workspace_flags() + dataset_flags() + run_flags();
}

/// --workerContainer ... of a role; those of a single node have no role before them.
cli::Flags role_flags(const std::string& role, const std::string& title) {
  const auto flag = [&](const std::string& name, std::string value, std::string help) {
    std::string spelled = role.empty() ? name : role + static_cast<char>(name[0] - 'a' + 'A');
    if (!role.empty()) spelled += name.substr(1);
    return cli::Flag{.name = "--" + spelled, .value = std::move(value), .help = std::move(help)};
  };
  const std::string of = title.empty() ? "" : " of " + title;
  return {flag("container", "IMAGE", "image" + of),
          flag("machineType", "TYPE", "machine" + of + ": p3.2xlarge, V100"),
          flag("command", "TEXT", "what is run by the shell" + of),
          flag("containerUser", "USER", "who runs in it (default: whom the image says)"),
          flag("registryUsername", "USER", "who logs in where the image is fetched from"),
          flag("registryPassword", "PASSWORD", "the same; kept as a secret of the project"),
          flag("registryUrl", "URL", "where to log in (default: as the image's name says)")};
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
         cli::Flags{count_flag("--workerCount", "how many; of GRPC experiments with the chief")} +
         role_flags("master", "the master (MPI)") +
         cli::Flags{count_flag("--masterCount", "1 (MPI)")} +
         role_flags("parameterServer", "parameter servers (GRPC)") +
         cli::Flags{count_flag("--parameterServerCount", "how many (GRPC)")} + former;
}

std::vector<cli::Command> kinds(const std::string& verb, const cli::Flags& more) {
  const std::string line = "gradient experiments " + verb;
  return {
      {.name = "singlenode",
       .help = "one container, which runs the command",
       .flags = role_flags("", "") + shared_flags() +
                cli::Flags{{.name = "--vpc", .help = "does nothing", .hidden = true}} + more +
                common_flags(),
       .example = line + " singlenode --name train --container python:3 --machineType C3 --command "
                         "'python main.py' --workspace ."},
      {.name = "multinode",
       .help = "several: a master and workers (MPI), or a TensorFlow cluster (GRPC)",
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
  const cli::Flags more = {
      {.name = "--no-logs", .help = "do not print its logs until it has ended"}};
  return {.name = "run",
          .help = "create an experiment, start it and print its logs",
          .commands = kinds("run", more)};
}

}  // namespace muster::dialects::gradient
