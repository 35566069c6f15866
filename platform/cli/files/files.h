// The commands on files of jobs: cp, artifacts; and the artifacts of a job as the commands of
// dialects need them: all pages of the list, and files of it brought into a folder of this machine.
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

/// PATH here, or JOB:PATH and JOB/TASK:PATH there.
struct CopyPlace {
  std::string job = {};   ///< empty: here
  std::string task = {};  ///< empty: the one that decides
  std::string path;

  bool is_here() const { return job.empty(); }
  bool operator==(const CopyPlace&) const = default;
};

/// A word is a place in a task where a job's name stands before its first ':'; so a file here that
/// is named like that is given as ./a:b. JOB: alone is the working folder of the task.
CopyPlace copy_place_of(std::string_view word);
/// As it would be written.
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
  std::vector<std::string> paths;  ///< files, and folders with all that is in them; empty: all
  std::string folder;              ///< where they go; empty: NAME-artifacts here
};

Result<int> execute(const CopyCommand& command, const Hooks& hooks);
Result<int> execute(const ArtifactListCommand& command, const Hooks& hooks);
Result<int> execute(const ArtifactGetCommand& command, const Hooks& hooks);

// copy.cc
Command copy_command();
// artifacts.cc
Command artifacts_command();

/// All whose paths begin with `prefix`.
Result<api::ArtifactPage> all_artifacts(Connection& connection, const std::string& job,
                                        const api::ArtifactQuery& query);

struct FetchedArtifacts {
  size_t files = 0;
  int64_t bytes = 0;
  size_t here_already = 0;
  size_t left_out = 0;  ///< links, devices and their like, each said on standard error
  size_t failed = 0;    ///< each said on standard error
};

/// Fetches what the command names. Errors: it names what is not there; nothing can be written.
Result<FetchedArtifacts> fetch_artifacts(Connection& connection, const ArtifactGetCommand& command,
                                         const std::string& program);

/// A path for a person's eyes: as it is where that is harmless, else in quotes with escapes.
std::string readable_path(const std::string& path);

// Files on their way out of a task, or into it: a tar over a WebSocket (api/terminal.h).
//
// Blocking; I/O. Memory is bounded whatever is copied: neither end takes more than it has written.

using base::Result;

/// `failed` counts what either end has left out.
using workspace::CopyTotals;

struct CopyHandlers {
  workspace::OnCopyNote on_note;  ///< of either end
  std::function<void(const CopyTotals&)> on_progress;
};

struct CopyEnd {
  CopyTotals totals;
  bool interrupted = false;  ///< by Ctrl-C: the file that was begun is not there
};

/// Unpacks what the task sends.
///
/// Errors: those of unpack_tar(), and what the other end said. kConflict: it was ended there.
/// kUnavailable: the connection broke.
Result<CopyEnd> copy_out(http::WebSocketClient& socket, const workspace::UnpackWish& wish,
                         Interrupts& interrupts, const CopyHandlers& handlers);

/// Sends what `packer` packs.
Result<CopyEnd> copy_in(http::WebSocketClient& socket, workspace::TarPacker& packer,
                        const CopyHandlers& handlers);

// Files that come from a server, into a folder of this machine. What the server calls them is not
// trusted: none gets out of the folder, whatever its name, and whatever links lie there.
//
// A file comes in under a name of its own and is renamed when it is whole. What was cut off stays
// under that name, and is gone on with where the same content is to come again.
//
// I/O; blocking. One owner, one thread.

struct ExpectedFile {
  std::string path;  ///< relative, as the server has it
  int64_t bytes = 0;
  base::Time modified;
  std::string sha256;  ///< empty: not known
};

class ReceivedFiles;

/// One on its way.
class ReceivedFile {
 public:
  /// What is here already.
  int64_t bytes() const { return bytes_; }
  Result<void> put(std::string_view bytes);
  /// Forgets what has come.
  Result<void> begin_anew();
  /// Checks it and gives it its name. kInternal: it is not what was expected; begun anew.
  Result<void> keep();

 private:
  friend class ReceivedFiles;

  ExpectedFile expected_;
  int root_ = -1;          ///< of the ReceivedFiles, which must outlive it
  base::UniqueFd parent_;  ///< the folder that it belongs in
  std::string part_;       ///< its name in the root while it is not whole
  base::UniqueFd fd_;
  int64_t bytes_ = 0;
  workspace::Sha256 sha_;
};

class ReceivedFiles {
 public:
  /// Makes the folder where it is missing.
  static Result<ReceivedFiles> open(const std::filesystem::path& folder);

  /// Whether the very same is here under its name already. False where its sum is not known.
  bool has(const ExpectedFile& file) const;

  /// kInvalid: its path would lead out of the folder. kConflict: something is in its way.
  Result<ReceivedFile> receive(const ExpectedFile& file);

 private:
  explicit ReceivedFiles(base::UniqueFd root) : root_(std::move(root)) {}

  base::UniqueFd root_;
};

}  // namespace muster::cli::files
