// Data-parallel training by parameter servers: each worker, by its own pace, pulls the weights,
// learns from a batch of its shard, and pushes the gradient, with which the servers make a step at
// once. Nobody waits for anybody, unless the servers bound staleness.
//
// The training is over when all workers together have pushed as many batches as the epochs have, no
// matter who pushed them: a lost worker holds nobody up, and one that joins late takes its part of
// what is left. A worker's shard is dealt anew in each of its passes (shard.h), so that the images
// which a lost worker leaves in one pass are mostly others' in the next.
//
// The chief tests the weights after each epoch, and what it has at the end is the result.
#pragma once

#include <optional>

#include "idx.h"
#include "muster/collective/result.h"
#include "muster/parameter_server/client.h"
#include "training.h"

namespace muster::digits {

/// Which of the workers this process is. The chief is number 0.
struct WorkerPlace {
  int index;
  int workers;
};

struct WorkDone {
  std::uint64_t images;                 // that this worker learned from
  std::optional<Outcome> outcome = {};  // of the chief
};

/// Called by every worker, with equal settings and data, on a client that has connected. Leaves the
/// servers when it returns without an error. Only the chief's observer is called; loss and training
/// accuracy in its reports are of its own batches.
///
/// Errors: those of the client; kPeerLost where the chief has gone before the training was over;
/// kBadArgument where there are fewer training images than workers.
collective::Result<WorkDone> train_with_servers(parameter_server::Client& client,
                                                const WorkerPlace& place, const Dataset& data,
                                                const Settings& settings,
                                                const parameter_server::Optimizer& optimizer,
                                                const Observer& observer);

}  // namespace muster::digits
