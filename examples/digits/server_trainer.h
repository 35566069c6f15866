// Data-parallel training with parameter servers: each worker, at its own pace, pulls the weights,
// learns from a batch of its shard, and pushes the gradient, with which the servers take a step at
// once. No worker waits for another, unless the servers bound staleness.
//
// The training ends when all workers together have pushed as many batches as the epochs have. A
// lost worker delays no other, and a late worker takes a share of the remaining batches. In each
// pass a worker has another shard (shard.h), so that images that a lost worker misses in one pass
// mostly belong to other workers in the next.
//
// The chief tests the weights after each epoch, and its last test is the result.
#pragma once

#include <optional>

#include "idx.h"
#include "muster/collective/result.h"
#include "muster/parameter_server/client.h"
#include "training.h"

namespace muster::digits {

/// The number of this worker. The chief is number 0.
struct WorkerPlace {
  int index;
  int workers;
};

struct WorkDone {
  std::uint64_t images;                 // the number from which this worker learned
  std::optional<Outcome> outcome = {};  // on the chief only
};

/// Called by every worker, with equal settings and data, with a connected client. Leaves the
/// servers if it returns without an error. Only the chief's observer is called. Loss and training
/// accuracy in its reports cover the chief's own batches; a chief that joins after the last step has
/// not measured them.
///
/// Errors: those of the client; kPeerLost if the chief ends before the training does; kBadArgument
/// if there are fewer training images than workers.
collective::Result<WorkDone> train_with_servers(parameter_server::Client& client,
                                                const WorkerPlace& place, const Dataset& data,
                                                const Settings& settings,
                                                const parameter_server::Optimizer& optimizer,
                                                const Observer& observer);

}  // namespace muster::digits
