// What a rank asks for when it hands an operation over, and whether two ranks ask for the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "call/call.h"
#include "muster/collective/result.h"

namespace muster::collective::session {

struct Request {
  /// Of all_gather and all_to_all without `count` and `shape`, which no rank knows alone. The
  /// sequence is 0.
  Call call;

  /// all_reduce of two tensors or more: elements of each. reduce_scatter: elements of every rank's
  /// part. all_gather: one, the bytes of this rank's part. all_to_all: the bytes for every rank.
  std::vector<std::uint64_t> lengths;

  /// bounded_shape() of what the caller calls the shape; mostly empty. Of the operation as it was
  /// handed over only, not of what was agreed on.
  std::string shape = {};

  bool operator==(const Request&) const = default;
};

inline constexpr std::size_t kLongestShape = 4096;

/// A shape as it is sent and compared: what exceeds kLongestShape is replaced by its hash.
std::string bounded_shape(std::string_view shape);

/// Bytes that one rank moves: what fusion counts.
std::uint64_t bytes_of(const Request& request);

/// Equal, but for lengths that ranks choose for themselves.
bool agree(const Request& one, const Request& other);

/// As in messages: "5 float32, sum"; "8 bytes from rank 0"; "3 tensors of 12 float32, sum in all".
std::string to_string(const Request& request);

/// "all_reduce", "broadcast".
std::string_view to_string(CallKind kind);

/// A rank with its name for messages ("rank 0 on host a") and what it asks for.
struct Wanted {
  std::string who;
  const Request& request;
};

/// Two ranks that hand `name` over differently; `first` is the lower rank.
Error mismatch(std::string_view name, const Wanted& first, const Wanted& second);

}  // namespace muster::collective::session
