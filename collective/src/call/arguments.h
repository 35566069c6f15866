// What the caller of a collective may have got wrong by itself, told before anything is sent. All
// are kBadArgument. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "muster/collective/result.h"
#include "muster/collective/types.h"

namespace muster::collective {

/// A buffer and how many bytes of it are used.
struct Buffer {
  const void* data;
  std::uint64_t bytes;
};

Error bad_argument(std::string message);

/// Null only where it is empty.
Status check_buffer(const Buffer& buffer);

/// `in` and `out`, which are the same place or do not overlap.
Status check_buffers(const Buffer& in, const Buffer& out);

/// A type and an operation that fit together, and a count whose bytes can be counted.
Status check_reduction(DataType type, const Reduction& reduction, std::uint64_t count);

/// `what` is "the root", "the receiver".
Status check_rank(const std::string& what, int rank, int size);

/// One length for every rank, which together can be counted in bytes.
Status check_lengths(std::span<const std::uint64_t> lengths, std::size_t element_bytes, int size);

std::uint64_t sum_of(std::span<const std::uint64_t> lengths);

}  // namespace muster::collective
