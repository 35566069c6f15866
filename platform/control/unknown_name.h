// Names in sentences, and the error for an unknown name, which suggests the nearest known one.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace muster::control {

/// The whole name, as it is; base::in_quotes() shortens a long one and replaces what is not text.
inline std::string name_in_quotes(const std::string& name) {
  return "'" + name + "'";
}

/// kNotFound. `kind`: "job"; `otherwise`: what to do where no known name is near.
base::Error unknown_name(const std::string& kind, const std::string& name,
                         const std::vector<std::string>& known, const std::string& otherwise);

}  // namespace muster::control
