// Measures what the cost model needs, in a few milliseconds, and agrees on it: every rank gets the
// figures of the first, so that all choose alike.
#pragma once

#include "muster/collective/result.h"
#include "tcp/cost_model.h"
#include "tcp/exchange.h"

namespace muster::collective::tcp {

/// Called by all members of the mesh, before any call.
///
/// Errors: the failure of the world.
Result<Costs> probe(const Mesh& mesh, Scratch& scratch);

}  // namespace muster::collective::tcp
