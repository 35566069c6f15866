// The tensors of a declared model by name: both ends look up here what a pull or push speaks of, so
// a client refuses what its servers would, and in the same words.
//
// Thread-safety: none needed, nothing changes after the constructor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "muster/collective/result.h"
#include "parameter_server/layout.h"

namespace muster::parameter_server {

/// A tensor as a pull or push names it.
struct NamedTensor {
  std::string name;
  std::uint64_t elements;  // of all of it, wherever they are
};

class Catalogue {
 public:
  /// Of tensors that check() found nothing wrong with.
  explicit Catalogue(std::vector<Tensor> tensors);

  const std::vector<Tensor>& tensors() const { return tensors_; }

  /// The places of the named tensors among the declared.
  ///
  /// Errors: kBadArgument for tensors that were not declared, have another number of elements, or
  /// come twice; all of them.
  collective::Result<std::vector<std::size_t>> look_up(std::span<const NamedTensor> named) const;

 private:
  std::vector<Tensor> tensors_;
  std::unordered_map<std::string, std::size_t> places_;
};

}  // namespace muster::parameter_server
