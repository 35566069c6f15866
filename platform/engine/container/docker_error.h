// What an engine refuses, as an Error with the engine's own words.
//
// Pure. Docker says it by the status; Podman answers 500 to nearly everything, and tells what
// happened in the body.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace muster::engine {

/// `doing`: what was asked of it ("container 'x' cannot be started"); `engine`: which one, as in
/// "the engine at unix:///run/docker.sock".
base::Error error_of(int status, std::string_view body, const std::string& doing,
                     const std::string& engine);

/// Of a pull that has failed. What registries answer comes through as a sentence alone.
base::Error pull_error(const std::string& message, const std::string& image,
                       const std::string& engine);

}  // namespace muster::engine
