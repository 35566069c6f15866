// `gradient experiments create|run singlenode|multinode`: from its flags to a job.
//
// Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/command/arguments.h"
#include "cli/connection/contexts.h"
#include "cli/spec/send_workspace.h"
#include "job/machine_type.h"
#include "job/spec.h"

namespace muster::dialects::gradient {

struct Dataset {
  std::string uri;   ///< a local folder
  std::string name;  ///< tasks find it in /data/NAME
};

/// A password of a registry, to be stored as a secret of the project before the job is submitted.
struct RegistryPassword {
  std::string flag;  ///< the flag with the password
  std::string secret;
  std::string password;
};

/// Names of flags for advice about workspaces.
inline workspace::FlagNames gradient_flag_names() {
  return {.ref = "--workspaceRef",
          .ignore = "--ignoreFiles",
          .username = "--workspaceUsername",
          .password = "--workspacePassword"};
}

struct Experiment {
  enum class Type { kSingle, kGrpc, kMpi };
  Type type = Type::kSingle;
  bool starts = false;   ///< of run; create holds the job
  bool follows = false;  ///< run without --no-logs
  std::string api_key;
  std::string name;   ///< as typed; may be empty
  job::JobSpec spec;  ///< without resources, trees and the final name, which need the server
  // The machine type of each role (see find_machine_type()); empty: there is no such role.
  std::string worker_machine;
  std::string leader_machine;
  std::string parameter_server_machine;
  std::optional<cli::spec::WorkspaceOptions> workspace;  ///< nothing: `none`
  std::vector<Dataset> datasets;
  std::vector<RegistryPassword> passwords;
  std::vector<std::string> notes;  ///< for standard error: flags without effect
  int missing = 0;                 ///< number of missing required flags
};

/// No workspace; or no value at this position of a list.
inline constexpr const char* kNone = "none";
/// The folder of the workspace, which is the working folder and home.
inline constexpr const char* kWorkspaceFolder = "/home/paperspace";
/// The folder of a data set.
std::string data_folder(const Dataset& dataset);

/// Reports all faults of the command line to `reader`. `path`: {"experiments",
/// "create", "multinode"}. Volumes of trees are in the spec, without their source.
///
/// The caller's environment is not used: a container has its own.
Experiment read_experiment(const std::vector<std::string>& path, cli::FlagReader& reader,
                           const cli::Caller& caller);

/// Sets the claims and slots of the roles' machine types. Errors: kInvalid: a type is unknown.
base::Result<void> use_machines(const job::MachineTypes& types, Experiment& experiment);

/// A valid job name for an experiment's name: "My test!" -> "my-test".
std::string job_name_of(const std::string& name);

// The parts of single- and multi-node experiments (experiment_parts.cc).

/// The value of flags that are aliases; reports a fault if their values differ.
std::string one_of(const std::vector<std::string>& flags, cli::FlagReader& reader);

/// --experimentEnv: a JSON object. "secret:NAME" is a secret of the project.
void read_environment(cli::FlagReader& reader, job::JobSpec& spec);

/// --workspace and its former names, --workingDirectory, /storage, --artifactDirectory.
void read_places(cli::FlagReader& reader, Experiment& experiment);

/// --datasetUri and related flags, combined by position.
void read_datasets(cli::FlagReader& reader, Experiment& experiment);

/// --tag and --tags.
void read_tags(cli::FlagReader& reader, job::JobSpec& spec);

/// --modelPath, which requires --modelType. Every task gets the path, or the default, as a variable
/// (launch/contract_environment.h).
void read_model(cli::FlagReader& reader, Experiment& experiment);

/// Stores the flags as annotations, without secrets, and notes flags without effect. `path`: of the
/// command.
void keep_words(const std::vector<std::string>& path, const cli::FlagReader& reader,
                Experiment& experiment);

// The users and registries of containers.
//
// A password is never part of a job. It is stored as a secret of the project, named after the account:
// the same account has one secret, and a new password applies to all its users. The secret remains
// when experiments are deleted.

/// --containerUser, --registryUsername, --registryPassword and --registryUrl of each role.
void read_containers(const std::vector<std::string>& path, cli::FlagReader& reader,
                     Experiment& experiment);

/// "https://index.docker.io/v1/" -> "docker.io": the registry of an address.
std::string registry_of_url(const std::string& url);

/// "REGISTRY_docker_io_ada": the secret with the password of this account.
std::string registry_secret(const std::string& server, const std::string& username);

/// Gradient's commands are shell commands; a job's command is an argv: {"sh", "-c", text}.
std::vector<std::string> shell_command(const std::string& text);

/// The command of an MPI master: the words of a line that only calls mpirun, so that Muster recognises
/// the launcher and its ranks have their own logs; else shell_command().
std::vector<std::string> master_command(const std::string& text);

/// The words of a simple command; nothing if the shell would expand, redirect, or run several commands.
std::optional<std::vector<std::string>> plain_words(std::string_view text);

/// "sleep infinity": the command of Gradient's MPI workers, which only wait for the master.
bool is_endless_sleep(std::string_view text);

}  // namespace muster::dialects::gradient
