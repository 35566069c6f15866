// The data of the benchmark, and its expected results: ones and twos in a pattern of three
// elements, which differs between ranks, so that every result can be checked without a second
// buffer. Ones and twos are exact in every type.
//
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "muster/collective/types.h"

namespace muster::collective::bench {

/// Writes the data of rank `rank`: element i of `data` is element `first` + i of its pattern.
void fill(std::byte* data, std::uint64_t count, DataType type, int rank, std::uint64_t first = 0);

/// Whether `data` is the output of fill() with the same arguments.
bool is_pattern(const std::byte* data, std::uint64_t count, DataType type, int rank,
                std::uint64_t first = 0);

/// Whether `data` is the reduction of the patterns of `ranks` ranks. For an adasum, only whether
/// all its periods are equal.
bool is_reduced(const std::byte* data, std::uint64_t count, DataType type, ReduceOp op, int ranks,
                std::uint64_t first = 0);

}  // namespace muster::collective::bench
