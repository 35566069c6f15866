// From options to a ring: the rendezvous, then the connections to both neighbours. No port stays
// open afterwards.
#pragma once

#include <memory>

#include "muster/collective/bootstrap.h"
#include "muster/collective/result.h"
#include "ring/ring.h"

namespace muster::collective {

/// `options` are complete and those of a world of two or more; takes over options.listener.
///
/// Errors: those of Communicator::connect().
Result<std::unique_ptr<Ring>> join_ring(const Options& options);

}  // namespace muster::collective
