// The distribution of a model among servers. Its tensors are concatenated in the order of their
// declaration, and each server has an equal part of the elements. The parts are therefore equal for
// any sizes of tensors, and every worker computes the same parts from the same model.
//
// A server divides its part into slices, each of one tensor and of at most kSliceElements. Each
// slice has its own lock, so that pushes of different slices run at the same time.
//
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "muster/collective/result.h"

namespace muster::parameter_server {

/// 1 MiB: small enough for short lock times, large enough that the locks cost nothing.
inline constexpr std::uint64_t kSliceElements = 256 * 1024;

struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;

  bool operator==(const Tensor&) const = default;
};

/// Elements `first` .. `first + count - 1` of a tensor, row by row.
struct Slice {
  std::size_t tensor;  // its index among the declared tensors
  std::uint64_t first;
  std::uint64_t count;

  bool operator==(const Slice&) const = default;
};

/// The number of elements of a shape that check() has accepted.
std::uint64_t elements_of(const Tensor& tensor);

/// For messages: "2x3"; "scalar".
std::string shape_of(const Tensor& tensor);

/// Errors: kBadArgument, listing all faults: no tensors, empty or duplicate names, dimensions below
/// 1, and sizes beyond any memory.
collective::Status check(std::span<const Tensor> tensors);

/// The slices of server `server` of `servers`, in order. Empty if the model has fewer elements than
/// there are servers.
std::vector<Slice> part_of(std::span<const Tensor> tensors, std::size_t server,
                           std::size_t servers);

/// A tensor in a pull or push.
struct NamedTensor {
  std::string name;
  std::uint64_t elements;  // of the whole tensor, on all servers
};

/// The tensors of a declared model by name. Client and server both use it to check the tensors of a
/// pull or push, so that a client returns the same errors as its servers.
///
/// Thread-safety: immutable.
class Catalogue {
 public:
  /// `check()` must have accepted the tensors.
  explicit Catalogue(std::vector<Tensor> tensors);

  const std::vector<Tensor>& tensors() const { return tensors_; }

  /// The indices of the named tensors among the declared tensors.
  ///
  /// Errors: kBadArgument, listing all tensors that are not declared, have another number of
  /// elements, or occur twice.
  collective::Result<std::vector<std::size_t>> look_up(std::span<const NamedTensor> named) const;

 private:
  std::vector<Tensor> tensors_;
  std::unordered_map<std::string, std::size_t> places_;
};

}  // namespace muster::parameter_server
