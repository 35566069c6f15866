// The description of a collective call, and the header that sends it to other ranks. Ranks that
// make different calls detect it by the header before they exchange data.
//
// The header, 56 bytes, little-endian:
//
//   0  u32  magic "MSCO"        8  i32  root (broadcast, reduce) or 0
//   4  u8   kind               12  u32  zero
//   5  u8   data type or 0     16  u64  count: elements of a reduction, else bytes
//   6  u8   operation or 0     24  u64  shape: a hash of the single lengths, or 0
//   7  u8   zero               32  u64  sequence: the calls of this communicator, from 1
//                              40  f64  prescale, f64 postscale, of a reduction; else 1
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "muster/collective/result.h"
#include "muster/collective/types.h"
#include "transport/bytes.h"

namespace muster::collective {

enum class CallKind : std::uint8_t {
  kAllReduce = 1,
  kBroadcast = 2,
  kAllGather = 3,
  kBarrier = 4,
  kReduceScatter = 5,
  kReduce = 6,
  kAllToAll = 7,
  kSend = 8,  // from one rank to rank `root`; each pair has its own numbers
};

struct Call {
  CallKind kind = {};
  DataType type = {};                  // reductions only
  Reduction reduction = {ReduceOp{}};  // reductions only
  int root = 0;                        // broadcast and reduce only

  /// The total elements of a reduction, the bytes of a broadcast, or the total bytes of an
  /// all_gather; 0 for all_to_all, in which each rank may send a different number.
  std::uint64_t count = 0;

  /// hash_of_list() the elements of each tensor of an all_reduce; hash_of() the lengths of the parts
  /// of a reduce_scatter or all_gather; else 0. So it is 0 for one tensor and for equal parts.
  std::uint64_t shape = 0;
  std::uint64_t sequence = 0;

  bool operator==(const Call&) const = default;
};

/// For parts, one for each rank: 0 for equal lengths, since the total determines them.
std::uint64_t hash_of(std::span<const std::uint64_t> lengths);

/// For a list of tensors, the number of which the total does not determine: 0 only for fewer than
/// two lengths.
std::uint64_t hash_of_list(std::span<const std::uint64_t> lengths);

inline constexpr std::size_t kCallHeaderBytes = 56;
using CallHeader = std::array<std::byte, kCallHeaderBytes>;

CallHeader encode(const Call& call);

/// Empty if the bytes are not a valid header.
std::optional<Call> decode(const CallHeader& header);

/// A hash of all fields. Two different calls have equal signatures with a probability of 2^-64.
/// Never 0.
std::uint64_t signature_of(const Call& call);

/// For messages: "call 3 (all_reduce of 5 float32, sum)".
std::string to_string(const Call& call);

/// A rank and its call, for the message of a mismatch.
struct Asked {
  int rank;
  std::string host;
  std::optional<Call> call;  // empty: not a call of this library
};

/// "rank 0 on host a makes call 2 (...), but rank 1 on host b makes call 2 (...)", with the lower
/// rank first, so that both ranks report the same message.
Error mismatch(const Asked& one, const Asked& other);

}  // namespace muster::collective
