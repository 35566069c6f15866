// Where the files of a job come from: a folder, an archive or a git repository. An archive or a
// repository is first unpacked into a temporary folder, which Fetched owns and removes.
//
// I/O; blocking.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::workspace {

using base::Result;

/// The names of the caller's flags, for advice in errors. Each program has its own flags.
struct FlagNames {
  std::string ref = "--workspace-ref";
  std::string ignore = "--ignore";
  /// How a user gives a name and a password; empty: git's own credential helpers are the only way.
  std::string username;
  std::string password;

  bool takes_password() const { return !password.empty(); }
};

/// A workspace as the user wrote it.
struct WorkspaceSource {
  std::string where;     ///< a folder, an archive, or the URL of a repository
  std::string ref;       ///< branch, tag or commit of a repository; empty: its default branch
  std::string username;  ///< for the repository
  std::string password;  ///< git reads it from a private pipe (git_source.h)
  FlagNames flags;       ///< the flags that advice names
};

enum class SourceKind { kFolder, kArchive, kRepository };

/// kInvalid, with advice: `where` is not one of the three kinds (s3:, http to something else, an
/// option instead of a URL), a ref was given without a repository, or the URL contains a password.
Result<SourceKind> kind_of(const WorkspaceSource& source,
                           const std::filesystem::path& current_folder);

/// The files of a workspace in a folder.
struct Fetched {
  std::filesystem::path folder;  ///< contains the files
  std::string commit;            ///< commit id, if the source is a repository
  std::string note;              ///< a sentence for the user about what was left out, or empty
  std::filesystem::path own;     ///< temporary folder, removed by the destructor; empty: none

  Fetched() = default;
  Fetched(Fetched&& other) noexcept;
  Fetched& operator=(Fetched&& other) noexcept;
  ~Fetched();
};

/// `on_progress` receives the lines that git prints for people.
///
/// Errors: as kind_of(); kNotFound: the folder, archive, repository or ref does not exist;
/// kRefused: the repository requires a password, or rejects the given one; kUnavailable: its server
/// does not answer; kInvalid: the archive cannot be read, or has entries that lead out of it.
Result<Fetched> fetch(const WorkspaceSource& source, const std::filesystem::path& current_folder,
                      int64_t most_bytes,
                      const std::function<void(std::string_view)>& on_progress = {});

/// A new Fetched with an empty `folder` in a private temporary folder, below $TMPDIR or /tmp. I/O.
Result<Fetched> own_folder();

/// Unpacks a .zip, .tar or .tar.gz into `folder` and writes nothing outside it. `folder` must be
/// empty, and its path must contain no link. All entries are checked before the first is written.
///
/// kInvalid, with all faults at once: the file is not an archive, is damaged or encrypted; an entry
/// or a link leads out of it, or is a device; the unpacked content is larger than `most_bytes`,
/// whatever sizes the archive declares.
Result<void> unpack_archive(const std::filesystem::path& archive,
                            const std::filesystem::path& folder, int64_t most_bytes);

}  // namespace muster::workspace
