// Which backend carries the collectives of a world.
#pragma once

#include <memory>

#include "backend.h"
#include "muster/collective/result.h"
#include "shm/layout.h"
#include "world/world.h"

namespace muster::collective {

/// By where the ranks are: shared memory on one host, TCP where every rank has a host of its own,
/// both where hosts have several; or the plug-in that the options name. Called by all ranks at the
/// same time. The backend refers to the world.
///
/// Errors: those of Communicator::connect().
Result<std::unique_ptr<Backend>> choose_backend(World& world, const shm::Layout& layout);

/// Of this host's shared memory; all zero where there is none.
shm::Layout layout_of(const World& world);

}  // namespace muster::collective
