// This machine as a node of the process engine.
//
// Blocking: it looks at the machine, and says in the server's log what it does not offer.
#pragma once

#include "engine/engine.h"
#include "engine/process/options.h"

namespace muster::engine {

Node this_node(const ProcessEngineOptions& options);

}  // namespace muster::engine
