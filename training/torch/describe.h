// What a model and its optimizer look like, a line for each tensor, so that ranks, or a checkpoint
// and a model, can be compared before one is written over the other.
#pragma once

#include <torch/torch.h>

#include <optional>
#include <string>
#include <vector>

#include "muster/collective/result.h"
#include "muster/collective/types.h"

namespace muster::training {

struct NamedTensor {
  std::string name;
  torch::Tensor tensor;
};

/// Parameters, then buffers, of a module and its submodules, in the order in which they were
/// registered.
std::vector<NamedTensor> tensors_of(const torch::nn::Module& model);

/// "conv1.weight: float32 [16, 3, 3, 3]".
std::string describe(const NamedTensor& tensor);
std::vector<std::string> describe(const std::vector<NamedTensor>& tensors);

/// "SGD with 62 + 3 parameters".
std::string describe(const torch::optim::Optimizer& optimizer);

/// The type of the library for a type of torch; nothing where it has none (complex, quantised).
std::optional<collective::DataType> data_type_of(torch::ScalarType type);

/// "float32", or torch's own name where the library has none.
std::string type_name(torch::ScalarType type);

// All that an optimizer remembers, and its options, as bytes in the archive format of torch.

/// Errors: kBadArgument for an optimizer that does not implement save().
collective::Result<std::string> bytes_of(const torch::optim::Optimizer& optimizer);

/// Makes an optimizer of the same kind, over parameters of the same shapes in the same order,
/// remember that and nothing else. The bytes are trusted: they come from a rank of this job, or
/// from a file whose checksum is right.
///
/// Errors: kBadArgument where they are of another optimizer; it may have been changed in part.
collective::Status restore(torch::optim::Optimizer& optimizer, const std::string& bytes);

}  // namespace muster::training
