// bootstrap_from_environment() with the environment as an argument, so that it is a table.
#pragma once

#include "bootstrap/rendezvous_file.h"
#include "muster/collective/bootstrap.h"

namespace muster::collective {

/// The order of precedence stands in bootstrap.h. `process` is this one's id: the ranks that some
/// launchers start on one host have nothing in common but the process that started them.
Result<Options> bootstrap_from(const Lookup& variable, Options given, int process);

}  // namespace muster::collective
