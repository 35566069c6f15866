// A collective as it was asked for, and the header that carries it to the right neighbour, so that
// ranks which ask for different things find out before they mix their data.
//
// The header, 32 bytes, little-endian:
//
//   0  u32  magic "MSCO"        8  i32  root (broadcast) or 0
//   4  u8   kind               12  u32  zero
//   5  u8   data type or 0     16  u64  count: elements of all_reduce, else bytes
//   6  u8   operation or 0     24  u64  sequence: the calls of this communicator, from 1
//   7  u8   zero
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "muster/collective/types.h"
#include "transport/bytes.h"

namespace muster::collective {

enum class CallKind : std::uint8_t { kAllReduce = 1, kBroadcast = 2, kAllGather = 3, kBarrier = 4 };

struct Call {
  CallKind kind;
  DataType type = {};  // all_reduce only, as is `op`
  ReduceOp op = {};
  int root = 0;             // broadcast only
  std::uint64_t count = 0;  // all_reduce: elements; broadcast, all_gather: bytes (of a rank)
  std::uint64_t sequence = 0;

  bool operator==(const Call&) const = default;
};

inline constexpr std::size_t kCallHeaderBytes = 32;
using CallHeader = std::array<std::byte, kCallHeaderBytes>;

CallHeader encode(const Call& call);

/// Nothing where the bytes are not such a header.
std::optional<Call> decode(const CallHeader& header);

/// As in messages: "call 3 (all_reduce of 5 float32, sum)".
std::string to_string(const Call& call);

}  // namespace muster::collective
