// Finds a plug-in and makes it the backend of a world, for Options::transport "mpi" and "nccl".
//
// "mpi" is the MPI that started this process: Open MPI if OMPI_COMM_WORLD_SIZE is set, MPICH or a
// derivative (Intel MPI, MVAPICH) if PMI_RANK is set; MUSTER_COLLECTIVE_MPI (openmpi, mpich)
// overrides it. The module muster_collective_<name>.so is loaded from the first of these folders
// that contains it: those of MUSTER_COLLECTIVE_PLUGIN_PATH (separated by ':'), the folder of the
// library or program that contains this code, muster-collective/ in it, ../lib/muster-collective/
// beside it, and the library's installation folder.
//
// A loaded module is never unloaded: neither MPI nor NCCL supports it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend.h"
#include "bootstrap/rendezvous_file.h"
#include "muster/collective/result.h"
#include "plugins/plugin.h"
#include "world/world.h"

namespace muster::collective {

/// The module for `transport`: "openmpi", "mpich" or "nccl".
///
/// Errors: kConfiguration, if the MPI cannot be determined, or for an unknown name.
Result<std::string> plugin_named(const std::string& transport, const Lookup& variable);

/// The files that may contain module `name`, in order of precedence.
std::vector<std::string> plugin_files(const std::string& name, const Lookup& variable);

/// Loads the first existing file of `files`.
///
/// Errors: kConfiguration, with the missing files, the message of dlopen, or a wrong version.
Result<const MusterPlugin*> load_module(const std::string& name,
                                        const std::vector<std::string>& files);

/// The backend for options.transport of `world`, on all of its ranks. `bootstrap`, a backend of the
/// same world, checks that all ranks make the same calls; it is taken over, and may be null in a
/// world of one rank. `world` outlives the backend.
///
/// Errors: kConfiguration, equal on every rank: what is missing, and on which rank.
Result<std::unique_ptr<Backend>> load_plugin(World& world, std::unique_ptr<Backend> bootstrap);

}  // namespace muster::collective
