// Finds a plug-in and makes it the backend of a world: what Options::transport "mpi" and "nccl"
// mean.
//
// "mpi" is the MPI under which this process was started: Open MPI where OMPI_COMM_WORLD_SIZE is
// set, MPICH or one of its kin (Intel MPI, MVAPICH) where PMI_RANK is; MUSTER_COLLECTIVE_MPI
// (openmpi, mpich) overrides it. The module muster_collective_<name>.so is taken from the first of
// these folders that has it: those of MUSTER_COLLECTIVE_PLUGIN_PATH (separated by ':'), that of the
// library or program this code is in, muster-collective/ in it, ../lib/muster-collective/ beside
// it, and where the library was installed.
//
// A module, once loaded, stays: neither MPI nor NCCL can be unloaded.
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

/// The module that `transport` stands for: "openmpi", "mpich" or "nccl".
///
/// Errors: kConfiguration, where no MPI can be told, or the name is none.
Result<std::string> plugin_named(const std::string& transport, const Lookup& variable);

/// The files in which module `name` is looked for, in order.
std::vector<std::string> plugin_files(const std::string& name, const Lookup& variable);

/// The first of `files` that is there.
///
/// Errors: kConfiguration, with the files tried or what dlopen said, or a version that is not ours.
Result<const MusterPlugin*> load_module(const std::string& name,
                                        const std::vector<std::string>& files);

/// The backend for options.transport of `world`, on all of its ranks. `bootstrap`, a backend of the
/// same world, checks that all make the same calls; it is taken over, and may be null in a world of
/// one. `world` outlives the backend.
///
/// Errors: kConfiguration, the same on every rank: what is missing, and on which.
Result<std::unique_ptr<Backend>> load_plugin(World& world, std::unique_ptr<Backend> bootstrap);

}  // namespace muster::collective
