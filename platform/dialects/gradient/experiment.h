// What `gradient experiments create|run singlenode|multinode` was told, and the job that it
// becomes.
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
  std::string uri;   ///< a folder of the caller
  std::string name;  ///< found at /data/NAME
};

/// What opens a registry, to be kept as a secret of the project before the job is submitted.
struct RegistryPassword {
  std::string flag;  ///< that said it
  std::string secret;
  std::string password;
};

/// Gradient's flags, as advice about a workspace names them.
inline workspace::FlagNames gradient_flag_names() {
  return {.ref = "--workspaceRef",
          .ignore = "--ignoreFiles",
          .username = "--workspaceUsername",
          .password = "--workspacePassword"};
}

struct Experiment {
  enum class Type { kSingle, kGrpc, kMpi };
  Type type = Type::kSingle;
  bool starts = false;   ///< run: it is not held
  bool follows = false;  ///< run without --no-logs
  std::string api_key;
  std::string name;   ///< as it was said; may be empty
  job::JobSpec spec;  ///< all but what the server knows: resources, trees; and the final name
  // The machine types of each role, to be looked up (find_machine_type); empty: the role is absent.
  std::string worker_machine;
  std::string leader_machine;
  std::string parameter_server_machine;
  std::optional<cli::spec::WorkspaceOptions> workspace;  ///< nothing: `none`, an empty one
  std::vector<Dataset> datasets;
  std::vector<RegistryPassword> passwords;
  std::vector<std::string> notes;  ///< to be said on standard error: flags that do nothing here
  int missing = 0;                 ///< how many flags were not given that are needed
};

/// No workspace; or, in a list that is zipped with others, nothing in this place.
inline constexpr const char* kNone = "none";
/// Where the workspace is found, which is the working folder and the home.
inline constexpr const char* kWorkspaceFolder = "/home/paperspace";
/// Where a data set is found.
std::string data_folder(const Dataset& dataset);

/// Every fault of the command line goes into `reader`, all at once. `path`: {"experiments",
/// "create", "multinode"}. Volumes of trees stand in the spec already, without their source.
///
/// Nothing is taken over of the caller's environment: a container has one of its own.
Experiment read_experiment(const std::vector<std::string>& path, cli::FlagReader& reader,
                           const cli::Caller& caller);

/// Fills in what machines the roles ask for: claims, slots. kInvalid: one is unknown.
base::Result<void> use_machines(const job::MachineTypes& types, Experiment& experiment);

/// A job name made of what the user called the experiment: "My test!" -> "my-test".
std::string job_name_of(const std::string& name);

// What single- and multi-node experiments have in common, read one part after the other.
//
// Pure; for experiment.cc alone.

/// The one text of flags that are names of the same; a fault where they say different things.
std::string one_of(const std::vector<std::string>& flags, cli::FlagReader& reader);

/// --experimentEnv: a JSON object. "secret:NAME" is a secret of the project.
void read_environment(cli::FlagReader& reader, job::JobSpec& spec);

/// --workspace and its former names, --workingDirectory, /storage, --artifactDirectory.
void read_places(cli::FlagReader& reader, Experiment& experiment);

/// --datasetUri and its neighbours, zipped by their position.
void read_datasets(cli::FlagReader& reader, Experiment& experiment);

/// --tag and --tags.
void read_tags(cli::FlagReader& reader, job::JobSpec& spec);

/// --modelPath, which the model's type must stand beside. (What is said there, and what holds where
/// nothing is said, every task is told: launch/contract_environment.h.)
void read_model(cli::FlagReader& reader, Experiment& experiment);

/// Keeps what was said, but for what is secret, and notes what does nothing here.
/// `path`: of the command.
void keep_words(const std::vector<std::string>& path, const cli::FlagReader& reader,
                Experiment& experiment);

// Who runs in the container of each role, and how whoever fetches its image logs in to a registry.
//
// A password never stands in a job. It is kept as a secret of the project, which is named after the
// account that it opens: whoever says the same again keeps no second one, and a new password holds
// for all that use the account. It stays when experiments go, as other secrets do.
//
// Pure.

/// --containerUser, --registryUsername, --registryPassword and --registryUrl of every role that the
/// type of the experiment has.
void read_containers(const std::vector<std::string>& path, cli::FlagReader& reader,
                     Experiment& experiment);

/// "https://index.docker.io/v1/" -> "docker.io": the registry that an address means.
std::string registry_of_url(const std::string& url);

/// "REGISTRY_docker_io_ada": the secret that holds the password of this account.
std::string registry_secret(const std::string& server, const std::string& username);

// Gradient's commands are texts for a shell ("pip install -r requirements.txt && python mnist.py");
// a job's command is an argv.
//
// Pure.

/// {"sh", "-c", text}.
std::vector<std::string> shell_command(const std::string& text);

/// Of the master of an MPI experiment: the words of a line that does nothing but call mpirun, so
/// that the launcher is seen to be one and its ranks keep logs of their own; else shell_command().
std::vector<std::string> master_command(const std::string& text);

/// The words that a shell makes of the text where it has nothing else to do with it; nothing where
/// it would expand, redirect, or run more than one command.
std::optional<std::vector<std::string>> plain_words(std::string_view text);

/// "sleep infinity": what Gradient's workers run so that the master finds them there.
bool is_endless_sleep(std::string_view text);

}  // namespace muster::dialects::gradient
