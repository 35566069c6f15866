// A commit of a repository as a folder of files, fetched by git itself, with the keys, proxies and
// certificates that the user has set up for it.
//
// Only the commit that is wanted, without its history, where the server hands that out. Submodules
// are not fetched: each would be another repository with a login of its own; it is said so.
//
// Blocking; I/O.
#pragma once

#include "workspace/git_process.h"
#include "workspace/sources.h"

namespace muster::workspace {

/// Errors: as fetch().
Result<Fetched> fetch_repository(const Source& source, const OnGitLine& on_line);

/// kInvalid: a ref or a login that git cannot be given. Pure.
Result<void> check_repository(const Source& source);

}  // namespace muster::workspace
