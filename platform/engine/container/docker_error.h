// Errors of engines and of pulls.
//
// Pure. Docker distinguishes errors by the status; Podman answers 500 to nearly everything and
// describes the error in the body.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/engine.h"

namespace muster::engine {

/// The error for a request that an engine refused, with the engine's own words. `doing`: the failed
/// request ("container 'x' cannot be started"); `engine`: its name in messages ("the engine at
/// unix:///run/docker.sock").
base::Error error_of(int status, std::string_view body, const std::string& doing,
                     const std::string& engine);

/// The error for a failed pull. Engines pass on a registry's answer as a sentence without a status.
base::Error pull_error(const std::string& message, const std::string& image,
                       const std::string& engine);

// --- errors about the image of a job, with advice that names the node and the job's flags

/// The error for a pull that failed with DockerClient's `error`; the code is kept.
base::Error pull_fault(const ImageRequest& request, base::Error error);

/// kNotFound: the node does not have the image, and the job does not allow a pull.
base::Error image_is_missing(const ImageRequest& request);

/// Whether the name is that of an image that was built on a node, so that no registry has it.
bool is_local_name(const std::string& image);
/// kNotFound, for such a name.
base::Error local_image_is_missing(const ImageRequest& request);

/// kRefused. Processors have the names that images use: "amd64".
base::Error wrong_processor(const ImageRequest& request, const std::string& image,
                            const std::string& node);

}  // namespace muster::engine
