// The flags that say what a job finds and what it is called by, read into a spec.
//
// Pure.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "cli/caller.h"
#include "cli/flag_reader.h"
#include "cli/send_workspace.h"
#include "job/spec.h"

namespace muster::cli {

/// Where tasks find the files that were sent with --workspace.
inline constexpr const char* kWorkspaceFolder = "/workspace";

/// --volume, --artifacts, --label, --hold, --stdin, --tty, --keep-for.
void read_content_flags(const Caller& caller, FlagReader& reader, job::JobSpec& spec);

/// --workspace and what belongs to it; nothing where it is not given.
std::optional<WorkspaceWish> read_workspace_flags(FlagReader& reader);

/// Lets every task of the job work in the files of the tree.
void work_in(const std::string& tree, job::JobSpec& spec);

/// FROM:TO[:ro|rw], where FROM is a path (relative to `folder`), storage/NAME or artifacts; nothing
/// for anything else, of which kVolumeForms says what it should be.
std::optional<job::Volume> parse_volume(const std::string& text,
                                        const std::filesystem::path& folder);
inline constexpr const char* kVolumeForms = "is not FROM:TO, FROM:TO:ro or FROM:TO:rw";

/// "NAME=VALUE" or "NAME" into labels.
void add_label(const std::string& text, job::JobSpec& spec);

}  // namespace muster::cli
