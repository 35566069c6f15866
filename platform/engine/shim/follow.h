// Reports what happens to a task, from the files that its shim leaves in the task's folder, as a
// stream of records (muster-shim --follow). A server whose engine runs tasks on other machines or
// in containers copies the folder from these records (engine/folder/mirror.h).
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
// What a task whose folder is elsewhere tells of itself: `muster-shim --follow FOLDER` writes it to
// its standard output, from the offsets that it is given on, and goes on until the task has ended
// and everything was told, or nobody reads there any more; where its standard input is a pipe or a
// socket, the end of that ends it, too. The server keeps a copy of the folder from it
// (engine/folder/mirror.h).
//
// All but the log and the metrics is told anew to each that follows: whoever was here before hears
// once more that the task runs, or of a rank. METRICS_OFFSET is for whoever has lost a connection:
// a file of metrics that was written anew meanwhile (metric_log.h) is told from the one before by
// its length alone, so whoever comes back after long better asks from 0.
//
// Each record is a frame (base/frame.h), whose tag is the FollowKind. Its bytes begin with eight
// that state where in the file the others belong, little endian: 0 where the kind has no file.
//
// Whoever follows for the first time may do so by the standard output of the container's process 1,
// which is the same stream from offset 0.

inline constexpr size_t kMaxFollowRecord = 64 << 10;
inline constexpr size_t kFollowOffset = 8;

enum class FollowKind : uint8_t {
  kRunning = 'r',  ///< the RunningRecord: its programs may be started from now on
  kRefused = 'x',  ///< it could not be started: "CODE\nWHAT" (base::error_code_of); the last record
  kAnswered = 'a',  ///< its remote shell's port greets
  kMpi = 'm',       ///< what mpirun said it is; before kRunning
  kRank = 'k',      ///< "RANK SIZE": a rank has signed in
  kLog = 'l',  ///< bytes of the log, at their offset: whole frames, but a stream may end in one
  /// The log's front was cut: the content of log.start. What stood before it and was not told by
  /// now never is: the next kLog then begins at that offset.
  kLogStart = 's',
  kMetrics = 't',  ///< bytes of the metrics file, at their offset; at 0: the file begins anew
  kExit = 'e',     ///< the ExitRecord; everything else was told before. The last record
};

struct FollowRecord {
  FollowKind kind = FollowKind::kLog;
  uint64_t offset = 0;
  std::string bytes;

  bool operator==(const FollowRecord&) const = default;
};

/// REQUIRES: bytes.size() <= kMaxFollowRecord.
std::string encode(const FollowRecord& record);

/// Cuts a stream that comes in pieces into records.
///
/// Not thread-safe.
class FollowReader {
 public:
  void add(std::string_view bytes) { frames_.add(bytes); }
  /// The next whole record; nullopt: more has to come. A stream that is none ends for good: see
  /// is_broken().
  std::optional<FollowRecord> next();
  bool is_broken() const { return broken_; }
  size_t waiting() const { return frames_.waiting(); }  ///< bytes that are no whole record yet
  size_t kept() const { return frames_.kept(); }        ///< in memory, with what was handed out

 private:
  base::FrameReader frames_{kFollowOffset + kMaxFollowRecord};
  bool broken_ = false;
};

// --- changes of folders
//
// Tells which files of a few folders have changed, for one who waits for that.
//
// The kernel lets a user have few watches (fs.inotify.max_user_instances, 128 for all containers of
// root together). Where it has none left, all is said to have changed a few times a second.
//
// Not thread-safe.

class FolderWatch {
 public:
  /// What has changed in a folder.
  struct Changes {
    bool all = false;  ///< or more than names tell
    std::set<std::string> names;

    bool has(const std::string& name) const { return all || names.count(name) > 0; }
  };

  /// `asks_kernel`: false in tests of the other way.
  explicit FolderWatch(bool asks_kernel = true);

  /// Readable when something has changed since the last take() of any folder. Before a wait for it,
  /// ask has_changes(): take() of one folder also reads the changes of the others, and after that
  /// the descriptor is silent about them.
  int descriptor() const { return inotify_ ? inotify_.get() : timer_.get(); }

  /// False: it is not there (yet). At first, all in it has changed.
  bool add(const std::filesystem::path& folder);

  /// Since the last call; nothing of a folder that was not added.
  Changes take(const std::filesystem::path& folder);

  /// Whether there are changes that were read from the kernel and not taken.
  bool has_changes() const;

 private:
  void read();
  void take_turns();

  base::UniqueFd inotify_;
  base::UniqueFd timer_;  ///< in its place
  std::map<int, std::filesystem::path> folders_;
  std::map<std::filesystem::path, Changes> changes_;
};

// --- the follower
//
// muster-shim --follow: tells what becomes of a task, from what its shim leaves in its folder
// (records above). It only reads there, so any number may follow, and none of them is in the task's
// way: one whose reader is slow waits alone.
//
// Blocking; ends when the task has ended and everything was told, when nobody reads any more, or
// when `hang_up` tells of an end.

struct FollowPlan {
  TaskFolder folder;
  uint64_t log_offset = 0;
  uint64_t metrics_offset = 0;
  int output = 1;
  int hang_up = -1;  ///< its end ends this: a pipe or a socket
};

/// An exit code: 0 when all was told. REQUIRES: this process ignores SIGPIPE.
int follow(const FollowPlan& plan);

}  // namespace muster::engine
