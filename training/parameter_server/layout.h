// How a model is cut among servers. All its tensors lie end to end, in the order in which they were
// declared; each server has an equal part of that line, to the element. So no server holds more
// than another, whatever the sizes of the tensors, and every worker that declares the same model
// comes to the same parts without asking anybody.
//
// A server cuts its part further, into slices: of one tensor each, and of kSliceElements at most.
// What is done to a slice is done under its own lock, so pushes of different slices run at once.
//
// Pure: values in, values out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "muster/collective/result.h"

namespace muster::parameter_server {

/// 1 MiB: small enough for locks that are soon free, large enough that they cost nothing.
inline constexpr std::uint64_t kSliceElements = 256 * 1024;

struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;

  bool operator==(const Tensor&) const = default;
};

/// Elements `first` .. `first + count - 1` of a tensor, row by row.
struct Slice {
  std::size_t tensor;  // its place among the declared
  std::uint64_t first;
  std::uint64_t count;

  bool operator==(const Slice&) const = default;
};

/// Of a shape that check() found nothing wrong with.
std::uint64_t elements_of(const Tensor& tensor);

/// As in messages: "2x3"; "scalar".
std::string shape_of(const Tensor& tensor);

/// Errors: kBadArgument for a model without tensors, names that are empty or come twice, dimensions
/// below 1, and sizes that no memory holds; all of them.
collective::Status check(std::span<const Tensor> tensors);

/// The slices of server `server` of `servers`, in the order of the line. May be none: a model can
/// have fewer elements than there are servers.
std::vector<Slice> part_of(std::span<const Tensor> tensors, std::size_t server,
                           std::size_t servers);

}  // namespace muster::parameter_server
