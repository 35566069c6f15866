// What `gradient experiments create|run singlenode|multinode` was told, and the job that it
// becomes.
//
// Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command/arguments.h"
#include "cli/connection/caller.h"
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
  std::optional<cli::spec::WorkspaceWish> workspace;  ///< nothing: `none`, an empty one
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

}  // namespace muster::dialects::gradient
