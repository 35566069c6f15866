// The answer to a name that stands for nothing: with the nearest that does.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace muster::control {

/// kNotFound. `kind`: "job"; `otherwise`: what to do where no known name is near.
base::Error unknown_name(const std::string& kind, const std::string& name,
                         const std::vector<std::string>& known, const std::string& otherwise);

}  // namespace muster::control
