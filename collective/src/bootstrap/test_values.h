// Inputs for tests of the bootstrap: a key, and the environment of a process.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "bootstrap/rendezvous_file.h"
#include "transport/bytes.h"

namespace muster::collective::testing {

/// The key that all ranks of a test's job hold.
inline const Bytes kTestKey(16, std::byte{1});

/// The variables of a process, by name.
using Environment = std::map<std::string, std::string>;

/// Looks variables up in `environment`.
inline Lookup lookup_in(Environment environment) {
  return [environment =
              std::move(environment)](const std::string& name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    return found->second;
  };
}

}  // namespace muster::collective::testing
