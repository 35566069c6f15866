// Sends a job's files to the server, from a folder, an archive or a repository; files that the server
// already has are not sent again.
//
// Blocking; I/O. Prints progress on standard error if that is a terminal, and a summary line. Temporary
// files are removed at the end, also after Ctrl-C, which ends the process.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command/arguments.h"
#include "cli/connection/connection.h"
#include "job/spec.h"
#include "record/table.h"
#include "workspace/sources.h"

namespace muster::cli::spec {

struct WorkspaceOptions {
  workspace::WorkspaceSource source;
  std::vector<std::string> ignore;  ///< patterns, see workspace::IgnoreRules
  int64_t most_bytes = 0;           ///< 0: $MUSTER_WORKSPACE_LIMIT ("2G"), or the default
  bool use_gitignore = true;        ///< of a folder; false: .gitignore is ignored
  std::string program = "muster";   ///< the name in messages
  std::string what = "workspace";   ///< what the files are, in messages
};

struct SentWorkspace {
  std::string tree;    ///< for job::Volume::source
  std::string commit;  ///< of a repository
  int64_t bytes = 0;   ///< of all files
  int64_t sent = 0;    ///< bytes that were sent
  size_t files = 0;
};

/// .gitignore applies only to folders: the files of a repository or an archive are all sent.
///
/// Errors: those of workspace::fetch() and scan_folder(), and the server's.
Result<SentWorkspace> send_workspace(Connection& connection, const std::string& project,
                                     const WorkspaceOptions& options);

// Flags on files and labels. Pure.

/// Where tasks find the files of --workspace.
inline constexpr const char* kWorkspaceFolder = "/workspace";

/// --volume, --artifacts, --label; a volume of the spec with the same target is replaced. Paths of
/// volumes may still be relative.
void read_content_flags(FlagReader& reader, job::JobSpec& spec);

/// The key `workspace` of a job file: a text, or a map. It is a key of the command line, which sends
/// the files, and no field of a JobSpec.
struct WorkspaceKey {
  std::string from;
  std::string ref;
  std::vector<std::string> ignore;

  bool operator==(const WorkspaceKey&) const = default;
};
const record::Table& table_of(const WorkspaceKey*);

/// --workspace and its flags; nothing if it is not given.
std::optional<WorkspaceOptions> read_workspace_flags(FlagReader& reader);

/// Makes the tree the working folder of every task, in place of an earlier one.
void work_in(const std::string& tree, job::JobSpec& spec);

/// Reads "NAME=VALUE" or "NAME" as labels.
void add_label(const std::string& text, job::JobSpec& spec);

}  // namespace muster::cli::spec
