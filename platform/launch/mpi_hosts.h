// Which hosts of an MPI job take ranks, and the files that say so to those who ask.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "job/job.h"
#include "launch/hostfile.h"
#include "launch/task_plan.h"

namespace muster::launch {

// Relative to the generated folder.
inline constexpr const char* kHostfile = "hostfile";
inline constexpr const char* kHydraHostfile = "hostfile.intel";
inline constexpr const char* kDiscoverHosts = "discover_hosts.sh";

/// Another name for the launcher among the hosts that take ranks; empty: it takes none.
std::string launcher_alias(const job::Job& job);

/// Of `members`, tasks of a kMpi job in its order: the workers, by their numbers, and last the
/// launcher where it takes ranks, for mpirun fills hosts from the top.
std::vector<SlotHost> slot_hosts_of(const job::Job& job,
                                    const std::vector<const job::Task*>& members);

/// The hostfile for Open MPI, the one for Hydra, and the script that Horovod runs to learn who is
/// there (`--host-discovery-script`).
///
/// All three change while programs read them. Each is replaced as a whole (engine::Engine::
/// change_files): a shell in the midst of the script has the old one open and reads that to its
/// end. So the script holds what it prints and reads no other file, of which it might find the next
/// one.
std::vector<PlannedFile> host_files(const std::vector<SlotHost>& hosts);

}  // namespace muster::launch
