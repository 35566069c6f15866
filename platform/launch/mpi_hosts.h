// The hosts that take the ranks of an MPI job, and the files that list them.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "job/job.h"
#include "launch/task_plan.h"

namespace muster::launch {

// Relative to the generated folder.
inline constexpr const char* kHostfile = "hostfile";
inline constexpr const char* kHydraHostfile = "hostfile.intel";
inline constexpr const char* kDiscoverHosts = "discover_hosts.sh";

struct SlotHost {
  std::string name;
  int slots = 1;  ///< the number of ranks
};

/// Another name for the launcher among the hosts; empty: the launcher takes no ranks.
std::string launcher_alias(const job::Job& job);

/// The hosts of `members`, which are tasks of a kMpi job in its order: the workers by their numbers,
/// and last the launcher if it takes ranks, because mpirun fills hosts from the top.
std::vector<SlotHost> slot_hosts_of(const job::Job& job,
                                    const std::vector<const job::Task*>& members);

/// Open MPI: "name slots=2".
std::string open_mpi_hostfile(const std::vector<SlotHost>& hosts);
/// Intel MPI and MPICH: "name:2".
std::string hydra_hostfile(const std::vector<SlotHost>& hosts);

/// The hostfile for Open MPI, the hostfile for Hydra, and the script that Horovod runs to list the
/// hosts (`--host-discovery-script`).
///
/// All three change while programs read them, and each is replaced as a whole
/// (engine::Engine::change_files): a shell that runs the old script keeps it open to its end. The
/// script therefore contains what it prints. A file that it read could be of the next version.
std::vector<PlannedFile> host_files(const std::vector<SlotHost>& hosts);

/// Whether the command makes MPICH or Intel MPI print the rank before each line: "[3] text". True
/// if the command, or a script given on its line (sh -c "..."), calls mpiexec or mpirun with -l or
/// -prepend-rank among its own options, before the program. Programs print lines that begin with
/// "[3] " themselves, so in doubt the answer is false.
bool prepends_rank(const std::vector<std::string>& command);

}  // namespace muster::launch
