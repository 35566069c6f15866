// What squeue, sinfo and sacct are asked to print, and how it is read.
//
// Each value ends with a unit separator (ASCII 31), which none of them holds but a comment, and the
// comment comes last. Values are as long as they are: squeue cuts none that is given the width 0.
// Times are in UTC, for the programs are run so (slurm_environment.h).
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

/// Behind the name of the program. All jobs of a user that the controller still knows.
std::vector<std::string> squeue_arguments(uint32_t user);
/// Heterogeneous jobs as one, in the order of squeue. Lines that are no job's are passed over,
/// unless there is nothing else: kInternal.
base::Result<std::vector<ListedJob>> read_squeue(std::string_view text);

/// These jobs, as the accounting database knows them.
std::vector<std::string> sacct_arguments(const std::vector<uint64_t>& ids);
base::Result<std::vector<ListedJob>> read_sacct(std::string_view text);

/// All nodes, with a line for each partition that they are in.
std::vector<std::string> sinfo_arguments();
base::Result<std::vector<ListedNode>> read_sinfo(std::string_view text);

/// "2026-01-31T12:34:56", in UTC; nothing for "N/A", "Unknown", "None".
std::optional<base::Time> time_of(std::string_view text);

/// GPUs among a node's GRES, "gpu:a100:4(S:0-1),nic:2": how many, and of which type. Of several
/// types the type is empty.
struct Gpus {
  int count = 0;
  std::string type;
  bool operator==(const Gpus&) const = default;
};
Gpus gpus_in(std::string_view gres);

// The parts of heterogeneous jobs, which Slurm lists each by itself, as one job.
//
// Pure; thread-safe.

struct ListedPart {
  ListedJob job;
  uint64_t leader = 0;  ///< its own id, where it is no part of another
  int offset = 0;
};

/// Each job once, where its first part was, with the nodes of all its parts in their order. It goes
/// on while a part does, and has ended as the part that says why.
std::vector<ListedJob> whole_jobs(const std::vector<ListedPart>& parts);

/// How it ended, as wait(2) says it.
void set_exit(ListedJob& job, uint32_t status);

}  // namespace muster::engine::slurm
