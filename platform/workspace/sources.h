// Where the files of a job come from: a folder, an archive, a repository. What is no folder becomes
// one, in a place of its own that goes with the Fetched.
//
// I/O; blocking.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "workspace/flag_names.h"

namespace muster::workspace {

using base::Result;

/// What a user wrote.
struct Source {
  std::string where;     ///< a folder, a .zip, or the URL of a repository
  std::string ref;       ///< of a repository: branch, tag or commit; empty: its default branch
  std::string username;  ///< for it
  std::string password;  ///< shown to git through a pipe of its own alone
  FlagNames flags;       ///< which advice names
};

enum class SourceKind { kFolder, kArchive, kRepository };

/// kInvalid: it is none of these (s3:, http to something else, an option in the place of a URL), a
/// ref without a repository, a password within the URL; what to do instead.
Result<SourceKind> kind_of(const Source& source, const std::filesystem::path& current_folder);

struct Fetched {
  std::filesystem::path folder;  ///< holds the files
  std::string commit;            ///< of a repository
  std::string note;              ///< a sentence for its owner: what was left out; empty: nothing
  std::filesystem::path own;     ///< removed with this; empty: nothing

  Fetched() = default;
  Fetched(Fetched&& other) noexcept;
  Fetched& operator=(Fetched&& other) noexcept;
  ~Fetched();
};

/// `on_progress`: a line for people, as git tells it.
///
/// Errors: as kind_of(); kNotFound: no such folder, archive, repository or ref; kRefused: the
/// repository wants a password that was not given, or takes none of it; kUnavailable: its server
/// does not answer; kInvalid: an archive that is none, or with entries that lead out of it.
Result<Fetched> fetch(const Source& source, const std::filesystem::path& current_folder,
                      int64_t most_bytes,
                      const std::function<void(std::string_view)>& on_progress = {});

}  // namespace muster::workspace
