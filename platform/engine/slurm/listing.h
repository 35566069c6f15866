// The listings of squeue, sinfo and sacct: with which arguments they are printed, and how they are
// read.
//
// Each value ends with a unit separator (ASCII 31). Only comments may contain that character, so
// the comment comes last. Values are not cut: squeue prints a value with width 0 in full. Times are
// in UTC, since the programs run with TZ=UTC (slurm_programs.h).
//
// Pure; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "engine/slurm/slurm_client.h"

namespace muster::engine::slurm {

/// Lists all jobs of a user in the controller's memory. (Without the program's name.)
std::vector<std::string> squeue_arguments(uint32_t user);
/// A heterogeneous job is one job; the order is squeue's. Unreadable lines are skipped, unless
/// there are no others: kInternal.
base::Result<std::vector<ListedJob>> read_squeue(std::string_view text);

/// Lists these jobs in the accounting database.
std::vector<std::string> sacct_arguments(const std::vector<uint64_t>& ids);
base::Result<std::vector<ListedJob>> read_sacct(std::string_view text);

/// Lists all nodes, with a line for each partition of a node.
std::vector<std::string> sinfo_arguments();
base::Result<std::vector<ListedNode>> read_sinfo(std::string_view text);

/// "2026-01-31T12:34:56", in UTC; nullopt for "N/A", "Unknown", "None".
std::optional<base::Time> time_of(std::string_view text);

/// The GPUs among a node's GRES, "gpu:a100:4(S:0-1),nic:2". The type is empty if there are several.
struct Gpus {
  int count = 0;
  std::string type;
  bool operator==(const Gpus&) const = default;
};
Gpus gpus_in(std::string_view gres);

/// A component of a heterogeneous job, which Slurm lists as a job of its own; or a whole job.
struct ListedPart {
  ListedJob job;
  uint64_t leader = 0;  ///< the leader's id; for other jobs their own
  int offset = 0;
};

/// Each job once, at the place of its first part, with the nodes of all its parts in order. The job
/// runs while a part does; its end is that of the part with the most specific reason.
std::vector<ListedJob> whole_jobs(const std::vector<ListedPart>& parts);

/// `status`: as of wait(2).
void set_exit(ListedJob& job, uint32_t status);

}  // namespace muster::engine::slurm
