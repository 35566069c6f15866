#include "call/arguments.h"

#include <cmath>
#include <limits>
#include <numeric>

namespace muster::collective {
namespace {

// Half of the address space: sums of a few of them do not wrap.
constexpr std::uint64_t kMostBytes = std::numeric_limits<std::uint64_t>::max() / 2;

Error too_long() {
  return bad_argument("the length of the buffer does not fit in 63 bits");
}

}  // namespace

Error bad_argument(std::string message) {
  return {ErrorCode::kBadArgument, std::move(message)};
}

Status check_buffer(const Buffer& buffer) {
  if (buffer.data != nullptr || buffer.bytes == 0) return {};
  return bad_argument("the buffer is null, and its length is not 0");
}

Status check_buffers(const Buffer& in, const Buffer& out) {
  if (Status checked = check_buffer(in); !checked) return checked;
  if (Status checked = check_buffer(out); !checked) return checked;
  if (in.bytes == 0 || out.bytes == 0 || in.data == out.data) return {};
  const auto in_begin = reinterpret_cast<std::uintptr_t>(in.data);
  const auto out_begin = reinterpret_cast<std::uintptr_t>(out.data);
  if (in_begin + in.bytes <= out_begin || out_begin + out.bytes <= in_begin) return {};
  return bad_argument(
      "the input and the output overlap in part; they have to be the same place "
      "or apart");
}

Status check_reduction(DataType type, const Reduction& reduction, std::uint64_t count) {
  const std::size_t element = size_of(type);
  if (element == 0) {
    return bad_argument("there is no data type " + std::to_string(static_cast<int>(type)));
  }
  if (reduction.op < ReduceOp::kSum || reduction.op > ReduceOp::kAdasum) {
    return bad_argument("there is no operation " + std::to_string(static_cast<int>(reduction.op)));
  }
  if (std::isnan(reduction.prescale) || std::isnan(reduction.postscale)) {
    return bad_argument("a scale is not a number");
  }
  const bool scales = reduction.prescale != 1 || reduction.postscale != 1;
  if (type == DataType::kBool && (reduction.op == ReduceOp::kAverage || scales)) {
    return bad_argument("bools have no average and no scale");
  }
  if (reduction.op == ReduceOp::kAdasum && !is_float(type)) {
    return bad_argument("adasum is for floats, not for " + std::string(to_string(type)));
  }
  if (count > kMostBytes / element) return too_long();
  return {};
}

Status check_rank(const std::string& what, int rank, int size) {
  if (rank >= 0 && rank < size) return {};
  return bad_argument(what + ", rank " + std::to_string(rank) + ", is not in a world of " +
                      std::to_string(size));
}

Status check_lengths(std::span<const std::uint64_t> lengths, std::size_t element_bytes, int size) {
  if (lengths.size() != static_cast<std::size_t>(size)) {
    return bad_argument("there are " + std::to_string(lengths.size()) + " lengths for a world of " +
                        std::to_string(size));
  }
  std::uint64_t room = kMostBytes / element_bytes;
  for (const std::uint64_t length : lengths) {
    if (length > room) return too_long();
    room -= length;
  }
  return {};
}

std::uint64_t sum_of(std::span<const std::uint64_t> lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0});
}

}  // namespace muster::collective
