// The record of a gang that was submitted to Slurm (lent/gang_record.h): it finds the Slurm job of
// the gang again, even if the answer to the submission was lost.
//
// I/O. Thread-safe (no state).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/lent/gang_record.h"

namespace muster::engine::slurm {

using lent::Seat;

/// The job that the gang is in Slurm.
struct SlurmJob {
  /// The attempt that was submitted; an earlier one if Slurm runs the job again.
  int submitted_attempt = 0;
  std::string comment;
  std::string shape;             ///< identifies the request: shape_of() of submission.h
  uint64_t id = 0;               ///< 0: not submitted, or the answer was lost
  std::vector<uint64_t> former;  ///< Slurm jobs of the same attempt that are over or cancelled
  int restarts = 0;              ///< of the Slurm job, when this attempt was submitted

  bool operator==(const SlurmJob&) const = default;
};

struct GangRecord {
  lent::GangRecord common;
  SlurmJob job;

  bool operator==(const GangRecord&) const = default;
};

/// The record's file in the folder of an attempt.
inline constexpr const char* kRecordFile = "slurm";
std::filesystem::path gang_record_in(const std::filesystem::path& attempt_folder);

std::string encode(const GangRecord& record);
/// kInvalid; the error does not quote the text, which may contain a key.
base::Result<GangRecord> decode_gang_record(std::string_view json);

/// The records of all gangs in a folder of jobs, with an error for each record that cannot be read.
/// An error: as lent::records_in().
base::Result<std::vector<std::pair<GangId, base::Result<GangRecord>>>> gang_records_in(
    const std::filesystem::path& jobs_folder);
/// Takes the place of a record that cannot be read, with a seat for each task that was started. The
/// random key is not the gang's, so no muster-node can connect with it. An error: as
/// lent::started_tasks_in().
base::Result<GangRecord> substitute_record(const std::string& owner, const GangId& gang,
                                           const std::filesystem::path& attempt_folder);

}  // namespace muster::engine::slurm
