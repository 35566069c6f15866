#include "parameter_server/layout.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace muster::parameter_server {
namespace {

using collective::Error;
using collective::ErrorCode;
using collective::Status;

// The limit of one tensor, and of all tensors together. Below it, a server's bookkeeping for a
// model is small compared to the message that declared the model.
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 40;

std::optional<std::string> fault_of(const Tensor& tensor) {
  std::uint64_t elements = 1;
  for (const std::int64_t dimension : tensor.shape) {
    if (dimension < 1) {
      return "'" + tensor.name + "' has a dimension of " + std::to_string(dimension);
    }
    if (static_cast<std::uint64_t>(dimension) > kMostElements / elements) {
      return "'" + tensor.name + "' has more than 2^40 elements (" + shape_of(tensor) + ")";
    }
    elements *= static_cast<std::uint64_t>(dimension);
  }
  return std::nullopt;
}

// The first element of server `server`'s part. If the elements do not divide evenly, the first
// parts are one element longer.
std::uint64_t begin_of(std::uint64_t total, std::uint64_t server, std::uint64_t servers) {
  return total / servers * server + std::min(server, total % servers);
}

}  // namespace

std::uint64_t elements_of(const Tensor& tensor) {
  std::uint64_t elements = 1;
  for (const std::int64_t dimension : tensor.shape) {
    elements *= static_cast<std::uint64_t>(dimension);
  }
  return elements;
}

std::string shape_of(const Tensor& tensor) {
  if (tensor.shape.empty()) return "scalar";
  std::string text;
  for (const std::int64_t dimension : tensor.shape) {
    if (!text.empty()) text += 'x';
    text += std::to_string(dimension);
  }
  return text;
}

Status check(std::span<const Tensor> tensors) {
  if (tensors.empty()) return Error{ErrorCode::kBadArgument, "the model has no parameters"};
  std::string faults;
  const auto add = [&](const std::string& fault) {
    faults += (faults.empty() ? "" : "; ") + fault;
  };
  std::set<std::string> names;
  std::uint64_t left = kMostElements;
  bool all_fit = true;
  for (const Tensor& tensor : tensors) {
    if (tensor.name.empty()) add("a parameter has no name");
    if (!names.insert(tensor.name).second) add("'" + tensor.name + "' is declared twice");
    if (const auto fault = fault_of(tensor)) {
      add(*fault);
      continue;
    }
    all_fit = all_fit && elements_of(tensor) <= left;
    if (all_fit) left -= elements_of(tensor);
  }
  if (!all_fit) add("all parameters together have more than 2^40 elements");
  if (faults.empty()) return {};
  return Error{ErrorCode::kBadArgument, faults};
}

std::vector<Slice> part_of(std::span<const Tensor> tensors, std::size_t server,
                           std::size_t servers) {
  std::uint64_t total = 0;
  for (const Tensor& tensor : tensors) total += elements_of(tensor);
  const std::uint64_t begin = begin_of(total, server, servers);
  const std::uint64_t end = begin_of(total, server + 1, servers);

  std::vector<Slice> slices;
  std::uint64_t tensor_begin = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::uint64_t tensor_end = tensor_begin + elements_of(tensors[i]);
    const std::uint64_t until = std::min(end, tensor_end);
    for (std::uint64_t at = std::max(begin, tensor_begin); at < until;) {
      const std::uint64_t count = std::min(kSliceElements, until - at);
      slices.push_back({.tensor = i, .first = at - tensor_begin, .count = count});
      at += count;
    }
    tensor_begin = tensor_end;
  }
  return slices;
}

using collective::Result;

Catalogue::Catalogue(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
  for (std::size_t i = 0; i < tensors_.size(); ++i) places_.emplace(tensors_[i].name, i);
}

Result<std::vector<std::size_t>> Catalogue::look_up(std::span<const NamedTensor> named) const {
  std::vector<std::size_t> places;
  std::set<std::size_t> seen;
  std::string faults;
  const auto add = [&](const std::string& fault) {
    faults += (faults.empty() ? "" : "; ") + fault;
  };
  for (const NamedTensor& one : named) {
    const auto found = places_.find(one.name);
    if (found == places_.end()) {
      add("parameter '" + one.name + "' was not declared");
      continue;
    }
    const Tensor& tensor = tensors_[found->second];
    if (!seen.insert(found->second).second) {
      add("'" + one.name + "' occurs twice");
    } else if (elements_of(tensor) != one.elements) {
      add("'" + one.name + "' has " + std::to_string(elements_of(tensor)) + " elements (" +
          shape_of(tensor) + "), not " + std::to_string(one.elements));
    }
    places.push_back(found->second);
  }
  if (!faults.empty()) return Error{ErrorCode::kBadArgument, faults};
  return places;
}

}  // namespace muster::parameter_server
