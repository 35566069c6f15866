#include "session/check.h"

#include <cmath>
#include <cstddef>
#include <string>

#include "session/protocol.h"

namespace muster::collective::session {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62U;

bool overlap_in_part(const std::byte* in, const std::byte* out, std::uint64_t bytes) {
  if (in == out || bytes == 0) return false;
  return in < out + bytes && out < in + bytes;
}

}  // namespace

Error bad(std::string_view name, std::string_view what) {
  return {ErrorCode::kBadArgument, "'" + std::string(name) + "': " + std::string(what)};
}

Status check_name(std::string_view name) {
  if (name.empty()) return bad(name, "an operation needs a name");
  if (name.size() > kLongestName) {
    return bad(name.substr(0, 40), "a name has at most " + std::to_string(kLongestName) +
                                       " bytes, this one " + std::to_string(name.size()));
  }
  return {};
}

Status check_reduction(std::string_view name, DataType type, const Reduction& reduction) {
  if (size_of(type) == 0) {
    return bad(name, "there is no data type " + std::to_string(static_cast<int>(type)));
  }
  const auto op = static_cast<int>(reduction.op);
  if (op < static_cast<int>(ReduceOp::kSum) || op > static_cast<int>(ReduceOp::kAdasum)) {
    return bad(name, "there is no reduction " + std::to_string(op));
  }
  if (reduction.op == ReduceOp::kAdasum && !is_float(type)) {
    return bad(name, "adasum is for floats, not for " + std::string(to_string(type)));
  }
  if (std::isnan(reduction.prescale) || std::isnan(reduction.postscale)) {
    return bad(name, "a scale is not a number");
  }
  if (type != DataType::kBool) return {};
  if (reduction.op == ReduceOp::kAverage) return bad(name, "bools have no average");
  if (reduction.prescale != 1 || reduction.postscale != 1) {
    return bad(name, "bools cannot be scaled");
  }
  return {};
}

Status check_bytes(std::string_view name, const void* data, std::uint64_t bytes) {
  if (bytes > kMostBytes) return bad(name, std::to_string(bytes) + " bytes are too many");
  if (data == nullptr && bytes > 0) {
    return bad(name, "the buffer of " + std::to_string(bytes) + " bytes is null");
  }
  return {};
}

Status check_tensor(std::string_view name, const Tensor& tensor, DataType type) {
  if (tensor.count > kMostBytes / size_of(type)) {
    return bad(name, std::to_string(tensor.count) + " elements are too many");
  }
  const std::uint64_t bytes = tensor.count * size_of(type);
  if (Status in = check_bytes(name, tensor.in, bytes); !in) return in;
  if (Status out = check_bytes(name, tensor.out, bytes); !out) return out;
  if (overlap_in_part(static_cast<const std::byte*>(tensor.in),
                      static_cast<const std::byte*>(tensor.out), bytes)) {
    return bad(name, "input and output overlap in part");
  }
  return {};
}

Status check_lengths(std::string_view name, std::span<const std::uint64_t> lengths, int size) {
  if (lengths.size() != static_cast<std::size_t>(size)) {
    return bad(name,
               std::to_string(lengths.size()) + " lengths for " + std::to_string(size) + " ranks");
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t length : lengths) {
    if (length > kMostBytes - sum) return bad(name, "the lengths are too large");
    sum += length;
  }
  return {};
}

}  // namespace muster::collective::session
