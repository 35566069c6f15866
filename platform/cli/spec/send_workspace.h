// Brings the files of a job to the server: from a folder, an archive or a repository, and only
// those that are not there yet.
//
// Blocking; I/O. Progress goes to standard error, where that is a terminal, and one line at the end
// in any case. What was fetched for it is gone when it returns; also where Ctrl-C ends it: the
// process dies of that then, with nothing left behind. What was sent by then need not be sent
// again.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command/arguments.h"
#include "cli/connection/connection.h"
#include "job/spec.h"
#include "workspace/sources.h"

namespace muster::cli::spec {

struct WorkspaceOptions {
  workspace::Source source;
  std::vector<std::string> ignore;  ///< patterns, as workspace::IgnoreRules has them
  int64_t most_bytes = 0;           ///< 0: $MUSTER_WORKSPACE_LIMIT ("2G"), or the usual limit
  bool use_gitignore = true;        ///< of a folder; false: what it names is sent all the same
  std::string program = "muster";   ///< who speaks
};

struct SentWorkspace {
  std::string tree;    ///< for job::Volume::source
  std::string commit;  ///< of a repository
  int64_t bytes = 0;   ///< of all files
  int64_t sent = 0;    ///< of these, what the server lacked
  size_t files = 0;
};

/// Only a folder's .gitignore decides what stays at home: what a repository or an archive has was
/// put into it.
///
/// Errors: those of workspace::fetch() and scan_folder(), and the server's.
Result<SentWorkspace> send_workspace(Connection& connection, const std::string& project,
                                     const WorkspaceOptions& options);

// The flags that say what a job finds and what it is called by, read into a spec.
//
// Pure.

/// Where tasks find the files that were sent with --workspace.
inline constexpr const char* kWorkspaceFolder = "/workspace";

/// --volume, --artifacts, --label. Paths of volumes may be relative still.
void read_content_flags(FlagReader& reader, job::JobSpec& spec);

/// --workspace and what belongs to it; nothing where it is not given.
std::optional<WorkspaceOptions> read_workspace_flags(FlagReader& reader);

/// Lets every task of the job work in the files of the tree.
void work_in(const std::string& tree, job::JobSpec& spec);

/// "NAME=VALUE" or "NAME" into labels.
void add_label(const std::string& text, job::JobSpec& spec);

}  // namespace muster::cli::spec
