// The checks of the arguments of collectives, before anything is sent: one function for each
// collective. Communicator and Session call them; lower layers do not check again.
//
// Pure. Errors: kBadArgument.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "muster/collective/communicator.h"
#include "muster/collective/result.h"
#include "muster/collective/types.h"

namespace muster::collective {

Error bad_argument(std::string message);

/// `error` with the name of the operation before its message: "'layer1.weight': ...".
Error about(std::string_view name, Error error);

/// A buffer may be null only if it is empty.
Status check_buffer(const void* data, std::uint64_t bytes);

/// Returns the total number of elements of all tensors.
Result<std::uint64_t> check_all_reduce(std::span<const Tensor> tensors, DataType type,
                                       const Reduction& reduction);

/// This rank and the number of ranks.
struct Place {
  int rank = 0;
  int size = 1;
};

/// `counts` are the elements of each rank's part. The output may be this rank's own part of the
/// input.
Status check_reduce_scatter(const void* in, const void* out, std::span<const std::uint64_t> counts,
                            DataType type, const Reduction& reduction, Place here);

/// `out` is used on the root only.
Status check_reduce(const void* in, const void* out, std::uint64_t count, DataType type,
                    const Reduction& reduction, int root, Place here);

/// `part` may be this rank's own part of the output.
Status check_all_gather(const void* part, const void* all,
                        std::span<const std::uint64_t> bytes_of_rank, Place here);

Status check_broadcast(const void* data, std::uint64_t bytes, int root, int size);

Status check_all_to_all(const void* in, std::span<const std::uint64_t> sent, const void* out,
                        std::span<const std::uint64_t> received, int size);

/// `what` is "the root", "the receiver".
Status check_rank(std::string_view what, int rank, int size);

/// The other rank of a message. `what` is "the receiver" or "the sender". A rank has no connection to
/// itself.
Status check_partner(std::string_view what, int partner, Place here);

/// Requires one length for each rank, and a total number of bytes that fits in 64 bits.
Status check_lengths(std::span<const std::uint64_t> lengths, std::size_t element_bytes, int size);

std::uint64_t sum_of(std::span<const std::uint64_t> lengths);

}  // namespace muster::collective
