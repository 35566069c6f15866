// The training of one rank, from its data to its exit code.
#pragma once

#include "images.h"
#include "muster/collective/session.h"
#include "options.h"

namespace muster::resnet20 {

/// Trains on `data` together with the session's other ranks. Rank 0 prints the progress to standard
/// output. A failure is printed to standard error. Returns the exit code.
int train(collective::Session& session, const Dataset& data, const Options& options);

}  // namespace muster::resnet20
