// Whether the arguments of a hand-over can be right, whatever the other ranks say.
//
// Pure. Errors: kBadArgument, naming the operation and the value.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "muster/collective/communicator.h"
#include "muster/collective/result.h"

namespace muster::collective::session {

Status check_name(std::string_view name);

/// The type and what is done with it.
Status check_reduction(std::string_view name, DataType type, const Reduction& reduction);

/// Elements of `type`: neither null nor longer than memory, the same place or apart.
Status check_tensor(std::string_view name, const Tensor& tensor, DataType type);
Status check_bytes(std::string_view name, const void* data, std::uint64_t bytes);

/// One length for every rank. Their sum fits in 64 bits.
Status check_lengths(std::string_view name, std::span<const std::uint64_t> lengths, int size);

Error bad(std::string_view name, std::string_view what);

}  // namespace muster::collective::session
