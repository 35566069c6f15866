// The data of the benchmark, and what has to come out of it: ones and twos in a pattern of three
// elements, which is different on each rank, so that whatever is reduced or moved can be checked
// without a second buffer. Ones and twos are exact in every type.
//
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "muster/collective/types.h"

namespace muster::collective::bench {

/// Writes what rank `rank` brings: element i of `data` is element `first` + i of its pattern.
void fill(std::byte* data, std::uint64_t count, DataType type, int rank, std::uint64_t first = 0);

/// Whether `data` is what fill() wrote.
bool is_pattern(const std::byte* data, std::uint64_t count, DataType type, int rank,
                std::uint64_t first = 0);

/// Whether `data` is the patterns of `ranks` ranks, reduced. Of an adasum only that all its periods
/// are alike.
bool is_reduced(const std::byte* data, std::uint64_t count, DataType type, ReduceOp op, int ranks,
                std::uint64_t first = 0);

}  // namespace muster::collective::bench
