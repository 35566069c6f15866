// Units that the tests of the ledger and of the nodes share.
#pragma once

#include <cstdint>

namespace muster::schedule {

inline constexpr int64_t kGib = int64_t{1} << 30;

}  // namespace muster::schedule
