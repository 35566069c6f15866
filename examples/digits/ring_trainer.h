// Data-parallel training by all-reduce: each rank learns from its shard, and one collective per
// step averages the gradients of all ranks, so that all take the same step from the same weights.
// They begin with rank 0's weights, and check at the end that their weights are still equal.
//
// On machines of one kind the result depends on the settings, the data and the world size only, to
// the bit.
#pragma once

#include "idx.h"
#include "muster/collective/communicator.h"
#include "muster/collective/result.h"
#include "training.h"

namespace muster::digits {

/// Called by every rank, with equal settings and data. Reports and outcome cover all ranks, and are
/// equal on all of them except for the times.
///
/// Errors: those of the collectives; kMismatch if the ranks end with different weights;
/// kBadArgument if there are fewer training images than ranks.
collective::Result<Outcome> train_in_ring(collective::Communicator& world, const Dataset& data,
                                          const Settings& settings, const Observer& observer);

}  // namespace muster::digits
