// The record of a gang that was submitted to Slurm, in the attempt's folder. It is written before
// the submission, so that a restarted server finds the Slurm job even if the answer was lost, and
// can check the keys of muster-nodes. It is removed when Slurm has nothing left of the gang.
//
// I/O. GangRecordWriter lives on the loop's thread; the rest is thread-safe (no state).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

  // Known once its muster-node has called:
  std::string node;  ///< Slurm's name of the node; empty: no call yet
  std::string address;
  bool shares_folder = false;

  bool started = false;        ///< the order to start it was sent, or is about to be
  bool has_artifacts = false;  ///< fetched when the task has ended, unless the folder is shared
  bool left = false;           ///< its muster-node was ordered to leave

  bool operator==(const Seat&) const = default;
};

struct GangRecord {
  rsh::Key key{};
  /// The attempt that was submitted; an earlier one if Slurm runs the job again.
  int submitted_attempt = 0;
  std::string comment;           ///< of the Slurm job
  std::string shape;             ///< identifies the request: shape_of() of submission.h
  uint64_t slurm_job = 0;        ///< 0: not submitted, or the answer was lost
  std::vector<uint64_t> former;  ///< Slurm jobs of the same attempt that are over or cancelled
  int restarts = 0;              ///< of the Slurm job, when this attempt was submitted
  std::vector<Seat> seats;       ///< in the order of the job's tasks
  bool given = false;            ///< the engine has reported the allocation
  std::optional<AllocationRevoked>
      taken;                  ///< the end of the allocation, as the engine has reported it
  bool queued_again = false;  ///< Slurm has requeued the job: the next attempt may take it over
  bool given_back = false;    ///< the allocation is no longer needed

  bool operator==(const GangRecord&) const = default;
};

/// The record's file in the folder of an attempt.
std::filesystem::path gang_record_in(const std::filesystem::path& attempt_folder);

std::string encode(const GangRecord& record);
/// kInvalid; the error does not quote the text, which may contain a key.
base::Result<GangRecord> decode_gang_record(std::string_view json);

/// The records of all gangs in a folder of jobs. Logs the records that cannot be read.
std::vector<std::pair<GangId, GangRecord>> gang_records_in(
    const std::filesystem::path& jobs_folder);

/// Writes records durably, off the loop's thread. Records that arrive during a write are written
/// together: a disk syncs a hundred records in little more time than one. Must not outlive the
/// loop.
class GangRecordWriter {
 public:
  using Done = std::function<void(base::Result<void>)>;

  explicit GangRecordWriter(base::EventLoop& loop) : writing_(loop) {}

  /// REQUIRES: the folder exists. Calls `done` once, later; never after this is destroyed.
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
