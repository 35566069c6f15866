// Adasum (S. Maleki et al., "Scaling distributed training with adaptive summation", MLSys 2021):
//
//   adasum(a, b) = (1 - a.b / 2|a|^2) a + (1 - a.b / 2|b|^2) b
//
// which is a + b if the vectors are orthogonal, and their mean if they are parallel. More than two
// vectors are combined in pairs at distance 1, 2, 4 ...; a world whose size is not a power of two
// folds first.
//
// Both ranks of a pair compute the same function of the same vectors, with the lower rank's first,
// so that all ranks have the same bits. Dot products are sums in double over the whole tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "backend.h"
#include "transport/bytes.h"

namespace muster::collective {

/// The transfers of vectors between two ranks. Errors: the world's failure.
struct AdasumLinks {
  int rank = 0;
  int size = 1;
  std::function<Status(int peer, ByteView mine, std::span<std::byte> theirs)> swap;
  std::function<Status(int peer, ByteView mine)> send;
  std::function<Status(int peer, std::span<std::byte> theirs)> receive;
};

/// Over the point-to-point calls of any backend.
AdasumLinks adasum_links(Backend& backend, int rank, int size);

/// Combines each tensor of the list separately. `type` is a float type.
Status adasum(const AdasumLinks& links, DataType type, const Reduction& reduction, Pieces pieces);

}  // namespace muster::collective
