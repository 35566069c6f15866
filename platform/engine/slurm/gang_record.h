// What a server notes of a gang that it asks Slurm for, in the attempt's folder, before anything is
// sent: the next one finds the Slurm job again though the answer was lost, and knows its
// muster-nodes by their key. It is there as long as Slurm may have anything of the gang.
//
// I/O; thread-safe (no state).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/background.h"
#include "base/event_loop.h"
#include "base/result.h"
#include "engine/engine.h"
#include "engine/rsh/secure_channel.h"

namespace muster::engine::slurm {

/// A task's place in the Slurm job.
struct Seat {
  std::string task;
  int component = 0;
  int index = 0;  ///< within the component
  int gpus = 0;
  bool may_be_missing = false;

  // Since its muster-node has called.
  std::string node;  ///< as Slurm calls it; empty: it has not
  std::string address;
  bool shares_folder = false;

  bool started = false;        ///< an order to start it was sent, or is about to be
  bool has_artifacts = false;  ///< which are fetched when it has ended, where nothing is shared
  bool left = false;           ///< its muster-node was told that nothing more is needed

  bool operator==(const Seat&) const = default;
};

struct GangRecord {
  rsh::Key key{};
  /// The attempt that was submitted: an earlier one where Slurm runs the job again.
  int submitted_attempt = 0;
  std::string comment;  ///< of the Slurm job
  std::string shape;    ///< what was asked for, to tell whether another attempt asks for the same
  uint64_t slurm_job = 0;          ///< 0: it was not sent, or its answer never came
  std::vector<uint64_t> former;    ///< Slurm jobs of the same attempt that are over or cancelled
  int restarts = 0;                ///< of the Slurm job, when this attempt began to wait for it
  std::vector<Seat> seats;         ///< in the order of the job's tasks
  bool given = false;              ///< the room was given
  std::optional<RoomTaken> taken;  ///< and taken away again: as it was told
  bool queued_again = false;  ///< by Slurm, which took it: for the next attempt, if there is one
  bool given_back = false;    ///< nothing of it is wanted any more

  bool operator==(const GangRecord&) const = default;
};

/// Of a gang whose attempts have this folder.
std::filesystem::path gang_record_in(const std::filesystem::path& attempt_folder);

std::string encode(const GangRecord& record);
/// kInvalid, which never shows what was there instead.
base::Result<GangRecord> decode_gang_record(std::string_view json);

/// Those of all gangs in a folder of jobs. What cannot be read is said in the server's log.
std::vector<std::pair<Gang, GangRecord>> gang_records_in(const std::filesystem::path& jobs_folder);

// Keeps the records of gangs so that they outlive a power failure, off the loop's thread. Those
// that come while others are being written are kept together: a disk takes hardly longer for a
// hundred.
//
// On the loop's thread, which it must not outlive.

class RecordKeeper {
 public:
  using Done = std::function<void(base::Result<void>)>;

  explicit RecordKeeper(base::EventLoop& loop) : writing_(loop) {}

  /// The folder is there. `done` is called once, later, and never when this is gone.
  void keep(std::filesystem::path path, const GangRecord& record, Done done);

 private:
  struct Wish {
    std::filesystem::path path;
    std::string text;
    Done done;
    base::Result<void> outcome;
  };
  void write_all();
  static void write(std::vector<Wish>& wishes);

  std::vector<Wish> waiting_;
  bool is_writing_ = false;
  base::Background writing_;
};

}  // namespace muster::engine::slurm
