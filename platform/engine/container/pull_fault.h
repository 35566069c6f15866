// Why an image could not be had, and what to do: what an engine or a registry says is about neither
// the node nor the flags of the job.
//
// Pure.
#pragma once

#include <string>

#include "base/error.h"
#include "engine/engine.h"

namespace muster::engine {

/// Of a fetch that has failed with DockerClient's `error`, whose code stays.
base::Error pull_fault(const ImageWish& wish, base::Error error);

/// kNotFound: the node has no such image, and none may be fetched.
base::Error image_is_missing(const ImageWish& wish);

/// The name is that of an image which was built on a node: there is no registry to ask.
bool is_local_name(const std::string& image);
/// kNotFound, of such a name.
base::Error local_image_is_missing(const ImageWish& wish);

/// kRefused. The processors are written as images have them: "amd64".
base::Error wrong_processor(const ImageWish& wish, const std::string& image,
                            const std::string& node);

}  // namespace muster::engine
