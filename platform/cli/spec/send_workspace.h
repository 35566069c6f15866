// Brings the files of a job to the server: from a folder, an archive or a repository, and only
// those that are not there yet.
//
// Blocking; I/O. Progress goes to standard error, where that is a terminal, and one line at the end
// in any case. What was fetched for it is gone when it returns; also where Ctrl-C ends it: the
// process dies of that then, with nothing left behind. What was sent by then need not be sent
// again.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/connection/connection.h"
#include "workspace/sources.h"

namespace muster::cli::spec {

struct WorkspaceWish {
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
                                     const WorkspaceWish& wish);

}  // namespace muster::cli::spec
