#include "parameter_server/catalogue.h"

#include <set>
#include <utility>

namespace muster::parameter_server {

using collective::Error;
using collective::ErrorCode;
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
      add("no parameter '" + one.name + "' was declared");
      continue;
    }
    const Tensor& tensor = tensors_[found->second];
    if (!seen.insert(found->second).second) {
      add("'" + one.name + "' comes twice");
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
