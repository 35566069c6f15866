// Images the way the network takes them, and how many of the test images it tells right.
//
// Thread-safety: as the network's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "idx.h"
#include "network.h"

namespace muster::digits {

struct Batch {
  Network::Matrix images;
  std::vector<std::uint8_t> labels;
};

/// The images of these numbers, their pixels multiplied by `scale`.
Batch batch_of(const ImageSet& set, std::span<const std::uint32_t> indices, float scale);

/// How many of the test images `first`, `first + stride`, `first + 2 * stride`, ... the network
/// takes for what they are.
int count_correct(Network& network, const Dataset& data, std::size_t first, std::size_t stride);

}  // namespace muster::digits
