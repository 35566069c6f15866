// What the opaque types of the C interface are made of, and how C lists become spans.
#pragma once

#include <span>
#include <vector>

#include "muster/collective.h"
#include "muster/collective/communicator.h"

// The names of C.
// NOLINTBEGIN(readability-identifier-naming)
struct muster_comm {
  muster::collective::Communicator world;
};
// NOLINTEND(readability-identifier-naming)

namespace muster::collective::c {

inline std::vector<Tensor> tensors_of(const muster_tensor* tensors, std::uint64_t count) {
  std::vector<Tensor> list;
  list.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    list.push_back({tensors[i].in, tensors[i].out, tensors[i].count});
  }
  return list;
}

/// One number for every rank.
inline std::span<const std::uint64_t> per_rank(const std::uint64_t* numbers, int size) {
  return {numbers, static_cast<std::size_t>(size)};
}

}  // namespace muster::collective::c
