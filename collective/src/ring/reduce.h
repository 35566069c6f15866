// The arithmetic of a reduction: plain loops over two arrays, written so that the compiler
// vectorises them for whatever machine it builds for.
//
// Pure; arrays may not overlap and are aligned for their type.
#pragma once

#include <cstddef>
#include <cstdint>

#include "muster/collective/types.h"

namespace muster::collective {

/// accumulator[i] = accumulator[i] op operand[i]; kAverage adds, finish_average() divides.
void reduce_into(void* accumulator, const void* operand, std::size_t count, DataType type,
                 ReduceOp op);

/// data[i] = data[i] / ranks. A true division, as the product with 1/ranks rounds twice.
void finish_average(void* data, std::size_t count, DataType type, int ranks);

}  // namespace muster::collective
