// The commands on files of jobs: cp, artifacts. Dialects use the functions on artifacts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/file_wire.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "cli/command/call.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/connection/connection.h"
#include "http/websocket.h"
#include "workspace/copy_report.h"
#include "workspace/left_files.h"
#include "workspace/tar_pack.h"
#include "workspace/tar_unpack.h"

namespace muster::cli::files {

/// A local PATH, or JOB:PATH or JOB/TASK:PATH in a task.
struct CopyPlace {
  std::string job = {};   ///< empty: a local path
  std::string task = {};  ///< empty: the task that decides the job's result
  std::string path;

  bool is_here() const { return job.empty(); }
  bool operator==(const CopyPlace&) const = default;
};

/// A word with a job's name before its first ':' is a path in a task; write ./a:b for a local file of
/// such a name. JOB: is the working folder of the task.
CopyPlace copy_place_of(std::string_view word);
/// The word for a place.
std::string to_text(const CopyPlace& place);

struct CopyCommand {
  std::vector<CopyPlace> from;
  CopyPlace to;
  std::string project = {};
};

struct ArtifactListCommand {
  std::string name;
  std::string project = {};
  bool checksums = false;
  Output output = Output::kTable;
};

struct ArtifactGetCommand {
  std::string name;
  std::string project = {};
  std::vector<std::string> paths;  ///< files, or folders with their content; empty: all
  std::string folder;              ///< the destination; empty: NAME-artifacts
};

Result<int> execute(const CopyCommand& command, const Hooks& hooks);
Result<int> execute(const ArtifactListCommand& command, const Hooks& hooks);
Result<int> execute(const ArtifactGetCommand& command, const Hooks& hooks);

// copy.cc
Command copy_command();
// artifacts.cc
Command artifacts_command();

/// All pages of a list. `truncated`: a folder of the job has too many entries to be listed.
Result<api::ArtifactPage> all_artifacts(Connection& connection, const std::string& job,
                                        const api::ArtifactQuery& query);

/// The error of a list that is truncated.
base::Error unlistable_artifacts(const std::string& job);

struct FetchedArtifacts {
  size_t files = 0;
  int64_t bytes = 0;
  size_t here_already = 0;
  size_t left_out = 0;  ///< links, devices and so on; each is reported on standard error
  size_t failed = 0;    ///< each is reported on standard error
};

/// Detail of a kNotFound error: the job exists, and has no artifact of this path.
struct NoSuchArtifact : base::ErrorDetail {
  explicit NoSuchArtifact(std::string which) : path(std::move(which)) {}
  std::string path;
};

/// Downloads artifacts. Errors: NoSuchArtifact; unlistable_artifacts(); the folder cannot be written.
Result<FetchedArtifacts> fetch_artifacts(Connection& connection, const ArtifactGetCommand& command,
                                         const std::string& program);

/// A path for messages: in quotes with escapes if it contains control characters.
std::string readable_path(const std::string& path);

// Copying from and to a task: a tar stream over a WebSocket (api/terminal.h).
//
// Blocking; I/O. Memory is bounded: both ends read only as fast as they write.

using base::Result;

/// `failed` counts the entries that either end has skipped.
using workspace::CopyTotals;

struct CopyHandlers {
  workspace::OnCopyNote on_note;  ///< messages of both ends
  std::function<void(const CopyTotals&)> on_progress;
};

struct CopyEnd {
  CopyTotals totals;
  bool interrupted = false;  ///< by Ctrl-C; the current file was removed
};

/// Unpacks what the task sends.
///
/// Errors: those of unpack_tar() and of the other end; kConflict: the copy was ended in the task;
/// kUnavailable: the connection was lost.
Result<CopyEnd> copy_out(http::WebSocketClient& socket, const workspace::UnpackRequest& request,
                         Interrupts& interrupts, const CopyHandlers& handlers);

/// Sends what `packer` packs.
Result<CopyEnd> copy_in(http::WebSocketClient& socket, workspace::TarPacker& packer,
                        const CopyHandlers& handlers);

// Receiving files from a server into a local folder. The server's paths are not trusted: no file
// leaves the folder, whatever its path and whatever links are in the folder.
//
// A file has a temporary name until it is complete. An incomplete file is kept, and continued if the
// same content is received again.
//
// I/O; blocking. One owner, one thread.

struct ExpectedFile {
  std::string path;  ///< relative, from the server
  int64_t bytes = 0;
  base::Time modified;
  std::string sha256;  ///< empty: unknown
};

class ReceivedFiles;

/// A file that is being received.
class ReceivedFile {
 public:
  /// The number of bytes received so far.
  int64_t bytes() const { return bytes_; }
  Result<void> put(std::string_view bytes);
  /// Discards the received bytes.
  Result<void> begin_anew();
  /// Verifies the file and renames it. Errors: kInternal: the checksum is wrong; the file is discarded.
  Result<void> keep();

 private:
  friend class ReceivedFiles;

  ExpectedFile expected_;
  int root_ = -1;          ///< descriptor of ReceivedFiles, which must outlive this
  base::UniqueFd parent_;  ///< the destination folder
  std::string part_;       ///< the temporary name, in the root
  base::UniqueFd fd_;
  int64_t bytes_ = 0;
  workspace::Sha256 sha_;
};

class ReceivedFiles {
 public:
  /// Creates the folder if necessary.
  static Result<ReceivedFiles> open(const std::filesystem::path& folder);

  /// Whether the same file already exists. False if its checksum is unknown.
  bool has(const ExpectedFile& file) const;

  /// Errors: kInvalid: the path leads out of the folder; kConflict: another file or folder exists there.
  Result<ReceivedFile> receive(const ExpectedFile& file);

 private:
  explicit ReceivedFiles(base::UniqueFd root) : root_(std::move(root)) {}

  base::UniqueFd root_;
};

}  // namespace muster::cli::files
