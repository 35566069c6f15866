// The options that are names or small numbers, checked alike whether they come from a program or
// from the environment.
#pragma once

#include "muster/collective/bootstrap.h"

namespace muster::collective {

/// Errors: kConfiguration, naming the value and those that there are.
Status check_choices(const Options& options);

}  // namespace muster::collective
