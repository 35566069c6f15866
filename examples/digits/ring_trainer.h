// Data-parallel training by all-reduce: each rank learns from its shard, the gradients of all ranks
// are averaged by one collective a step, and so all make the same step from the same weights. They
// begin with rank 0's, and prove at the end that they still hold the same.
//
// On machines of one kind the result depends on the settings, the data and the world size only, to
// the bit.
#pragma once

#include "idx.h"
#include "muster/collective/communicator.h"
#include "muster/collective/result.h"
#include "training.h"

namespace muster::digits {

/// Called by every rank, with equal settings and data. Reports and outcome are of all ranks, and so
/// the same on each of them, but for the times.
///
/// Errors: those of the collectives; kMismatch where the ranks end with different weights;
/// kBadArgument where there are fewer training images than ranks.
collective::Result<Outcome> train_in_ring(collective::Communicator& world, const Dataset& data,
                                          const Settings& settings, const Observer& observer);

}  // namespace muster::digits
