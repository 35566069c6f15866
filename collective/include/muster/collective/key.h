// The key of a job, MUSTER_RENDEZVOUS_KEY. Every process of a job that uses the network
// authenticates with it.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "muster/collective/result.h"

namespace muster::collective {

/// A shorter key is rejected.
inline constexpr std::size_t kShortestKeyBytes = 16;

/// The key from its hex text. Errors: kConfiguration; the message does not repeat the key.
Result<std::vector<std::byte>> parse_key(std::string_view hex);

}  // namespace muster::collective
