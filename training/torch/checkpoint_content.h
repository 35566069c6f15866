// What the checkpoints of whole and of divided optimizers have in common.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "describe.h"
#include "muster/collective/result.h"
#include "muster/training/checkpoint.h"

namespace muster::training {

/// "progress 3 1200 9600", and its inverse.
std::string progress_line(const Progress& progress);
std::optional<Progress> progress_of(const std::string& line);

/// Compares the lines of a checkpoint with those of this training, from line `first` on.
///
/// Errors: kMismatch with the differences.
collective::Status check_same(const std::string& path, const std::vector<std::string>& there,
                              const std::vector<std::string>& here, std::size_t first);

/// The elements of the tensors, one after the other.
std::string bytes_of(const std::vector<NamedTensor>& tensors);
std::size_t length_of(const std::vector<NamedTensor>& tensors);

/// Copies elements into the tensors. `bytes` has at least length_of(tensors).
void copy_bytes_into(const std::vector<NamedTensor>& tensors, const std::string& bytes);

}  // namespace muster::training
