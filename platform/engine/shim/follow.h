// Reports what happens to a task, from the files that its shim writes to the task's folder, as a
// stream of records. A server whose engine runs tasks in containers or on other machines rebuilds
// the folder from these records (engine/folder/mirror.h).
//
// Three programs write the stream: muster-shim --follow FOLDER LOG_OFFSET METRICS_OFFSET writes it
// to standard output, muster-shim --container does so from offset 0, and muster-node sends it to
// the server. The stream continues until the task has ended and every record is written, or until
// no process reads the stream.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/frame.h"
#include "base/unique_fd.h"
#include "engine/shim/plan.h"

namespace muster::engine {

// --- records
//
// Each record is a frame (base/frame.h) with the FollowKind as its tag. Its bytes begin with an
// offset: 8 bytes, little endian, the position of the other bytes in their file, or 0 for a kind
// without a file.
//
// A new stream repeats every record except those of the log and the metrics before its offsets. The
// metrics file is rewritten from time to time (metric_log.h), and a rewritten file is recognised by
// its length alone. So METRICS_OFFSET is safe only right after a connection was lost; a reader that
// returns later must begin at 0.

inline constexpr size_t kMaxFollowRecord = 64 << 10;
inline constexpr size_t kFollowOffset = 8;

enum class FollowKind : uint8_t {
  kRunning = 'r',   ///< the RunningRecord: programs can be started in the task from now on
  kRefused = 'x',   ///< the task could not be started: "CODE\nWHAT"; the last record
  kAnswered = 'a',  ///< the task's remote shell has greeted
  kMpi = 'm',       ///< the MPI of the task's mpirun; before kRunning
  kRank = 'k',      ///< a rank has signed in: "RANK SIZE"
  kLog = 'l',       ///< bytes of the log: whole frames, unless the stream breaks off in one
  /// The front of the log was cut: the content of log.start. The stream skips the bytes before that
  /// offset that it has not written yet: the next kLog begins there.
  kLogStart = 's',
  kMetrics = 't',  ///< bytes of the metrics file; offset 0: the file was rewritten
  kExit = 'e',     ///< the ExitRecord, after all other records; the last record
};

struct FollowRecord {
  FollowKind kind = FollowKind::kLog;
  uint64_t offset = 0;
  std::string bytes;

  bool operator==(const FollowRecord&) const = default;
};

/// REQUIRES: bytes.size() <= kMaxFollowRecord.
std::string encode(const FollowRecord& record);

/// Reads records from a stream that arrives in pieces. Not thread-safe.
class FollowReader {
 public:
  void add(std::string_view bytes) { frames_.add(bytes); }
  /// The next whole record; nullopt: more bytes are needed, or the stream is_broken().
  std::optional<FollowRecord> next();
  /// The bytes are not a stream of records; next() returns nothing more.
  bool is_broken() const { return broken_; }
  size_t waiting() const { return frames_.waiting(); }  ///< bytes of an unfinished record
  size_t kept() const { return frames_.kept(); }        ///< bytes in memory, including read records

 private:
  base::FrameReader frames_{kFollowOffset + kMaxFollowRecord};
  bool broken_ = false;
};

// --- changes of folders
//

/// Reports which files of a few folders have changed.
///
/// The kernel grants each user few inotify instances (fs.inotify.max_user_instances, 128 by default
/// for all containers of root together). When there are no more, FolderWatch reports all files as
/// changed a few times a second.
///
/// Not thread-safe.
class FolderWatch {
 public:
  /// The changes in a folder.
  struct Changes {
    bool all = false;  ///< any file may have changed
    std::set<std::string> names;

    bool has(const std::string& name) const { return all || names.count(name) > 0; }
  };

  /// `asks_kernel`: false in tests of the case without inotify.
  explicit FolderWatch(bool asks_kernel = true);

  /// Readable when a file has changed since the last take() of any folder. REQUIRES: has_changes()
  /// is false before a wait: take() of one folder also reads the changes of the others, and the
  /// descriptor is not readable for those again.
  int descriptor() const { return inotify_ ? inotify_.get() : timer_.get(); }

  /// Watches a folder, all of whose files count as changed at first. False: there is no such folder
  /// yet.
  bool add(const std::filesystem::path& folder);

  /// The changes since the last call; none for a folder that was not added.
  Changes take(const std::filesystem::path& folder);

  /// Whether there are changes that were read from the kernel and not taken yet.
  bool has_changes() const;

 private:
  void read();
  void take_turns();

  base::UniqueFd inotify_;
  base::UniqueFd timer_;  ///< used if there is no `inotify_`
  std::map<int, std::filesystem::path> folders_;
  std::map<std::filesystem::path, Changes> changes_;
};

// --- the follower
//
// The follower only reads the folder. So a task can have any number of followers, and a follower
// with a slow reader delays neither the task nor other followers.

struct FollowPlan {
  TaskFolder folder;
  uint64_t log_offset = 0;
  uint64_t metrics_offset = 0;
  int output = 1;
  int hang_up = -1;  ///< a pipe or socket; the follower stops when it ends
};

/// Writes the stream; blocks until it has ended. Returns an exit code; 0: every record is written.
/// REQUIRES: this process ignores SIGPIPE.
int follow(const FollowPlan& plan);

}  // namespace muster::engine
