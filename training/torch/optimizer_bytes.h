// All that an optimizer remembers, and its options, as bytes in the archive format of torch.
#pragma once

#include <torch/torch.h>

#include <string>

#include "muster/collective/result.h"

namespace muster::training {

/// Errors: kBadArgument for an optimizer that does not implement save().
collective::Result<std::string> bytes_of(const torch::optim::Optimizer& optimizer);

/// Makes an optimizer of the same kind, over parameters of the same shapes in the same order,
/// remember that and nothing else. The bytes are trusted: they come from a rank of this job, or
/// from a file whose checksum is right.
///
/// Errors: kBadArgument where they are of another optimizer; it may have been changed in part.
collective::Status restore(torch::optim::Optimizer& optimizer, const std::string& bytes);

}  // namespace muster::training
