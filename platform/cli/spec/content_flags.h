// The flags that say what a job finds and what it is called by, read into a spec.
//
// Pure.
#pragma once

#include <optional>
#include <string>

#include "cli/command/arguments.h"
#include "cli/spec/send_workspace.h"
#include "job/spec.h"

namespace muster::cli::spec {

/// Where tasks find the files that were sent with --workspace.
inline constexpr const char* kWorkspaceFolder = "/workspace";

/// --volume, --artifacts, --label. Paths of volumes may be relative still.
void read_content_flags(FlagReader& reader, job::JobSpec& spec);

/// --workspace and what belongs to it; nothing where it is not given.
std::optional<WorkspaceWish> read_workspace_flags(FlagReader& reader);

/// Lets every task of the job work in the files of the tree.
void work_in(const std::string& tree, job::JobSpec& spec);

/// "NAME=VALUE" or "NAME" into labels.
void add_label(const std::string& text, job::JobSpec& spec);

}  // namespace muster::cli::spec
