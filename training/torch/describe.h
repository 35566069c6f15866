// Descriptions of a model and its optimizer, one line for each tensor, by which ranks, or a
// checkpoint and a model, are compared before one overwrites the other.
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

/// The parameters, then the buffers, of a module and its submodules, in the order of their
/// registration.
std::vector<NamedTensor> tensors_of(const torch::nn::Module& model);

/// "conv1.weight: float32 [16, 3, 3, 3]".
std::string describe(const NamedTensor& tensor);
std::vector<std::string> describe(const std::vector<NamedTensor>& tensors);

/// "SGD with 62 + 3 parameters".
std::string describe(const torch::optim::Optimizer& optimizer);

/// The library's type for a type of torch; nullopt if it has none (complex, quantised).
std::optional<collective::DataType> data_type_of(torch::ScalarType type);

/// "float32", or torch's own name if the library has no such type.
std::string type_name(torch::ScalarType type);

// The complete state of an optimizer and its options, as bytes in the archive format of torch.

/// Errors: kBadArgument for an optimizer that does not implement save().
collective::Result<std::string> bytes_of(const torch::optim::Optimizer& optimizer);

/// Restores the state of an optimizer of the same kind, with parameters of the same shapes in the
/// same order, and deletes any other state. The bytes are trusted: they come from a rank of this
/// job, or from a file whose checksum is right.
///
/// Errors: kBadArgument if the bytes belong to another optimizer; part of the state may be changed
/// then.
collective::Status restore(torch::optim::Optimizer& optimizer, const std::string& bytes);

/// The options of all groups, as bytes, and their restoration. Errors: as above.
collective::Result<std::string> option_bytes_of(const torch::optim::Optimizer& optimizer);
collective::Status restore_options(torch::optim::Optimizer& optimizer, const std::string& bytes);

}  // namespace muster::training
