#include "call/arguments.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace muster::collective {
namespace {

// Half of the address space, so that sums of a few lengths do not wrap.
constexpr std::uint64_t kMostBytes = std::numeric_limits<std::uint64_t>::max() / 2;

Error too_long() {
  return bad_argument("the length of the buffer does not fit in 63 bits");
}

// A buffer and its number of used bytes.
struct Buffer {
  const void* data;
  std::uint64_t bytes;
};

// Checks that `in` and `out` are the same buffer or do not overlap.
Status check_buffers(const Buffer& in, const Buffer& out) {
  if (Status checked = check_buffer(in.data, in.bytes); !checked) return checked;
  if (Status checked = check_buffer(out.data, out.bytes); !checked) return checked;
  if (in.bytes == 0 || out.bytes == 0 || in.data == out.data) return {};
  const auto in_begin = reinterpret_cast<std::uintptr_t>(in.data);
  const auto out_begin = reinterpret_cast<std::uintptr_t>(out.data);
  if (in_begin + in.bytes <= out_begin || out_begin + out.bytes <= in_begin) return {};
  return bad_argument(
      "the input and the output overlap partly; they must be the same buffer or not overlap");
}

struct Extent {
  std::uintptr_t begin;
  std::uintptr_t end;
  std::size_t tensor;
};

Extent extent_of(const void* data, std::uint64_t bytes, std::size_t tensor) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  return {begin, begin + bytes, tensor};
}

Error overlapping(std::size_t a, std::size_t b) {
  return bad_argument("tensors " + std::to_string(std::min(a, b)) + " and " +
                      std::to_string(std::max(a, b)) +
                      " of the list overlap: the result of one would be an input of the other");
}

// Checks that no output of a list overlaps another tensor's output or input.
Status check_apart(std::span<const Tensor> tensors, std::size_t element) {
  std::vector<Extent> outputs;
  outputs.reserve(tensors.size());
  bool are_in_place = true;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].count == 0) continue;
    are_in_place = are_in_place && tensors[i].in == tensors[i].out;
    outputs.push_back(extent_of(tensors[i].out, tensors[i].count * element, i));
  }
  std::ranges::sort(outputs, {}, &Extent::begin);
  for (std::size_t i = 1; i < outputs.size(); ++i) {
    if (outputs[i].begin < outputs[i - 1].end) {
      return overlapping(outputs[i - 1].tensor, outputs[i].tensor);
    }
  }
  if (are_in_place) return {};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].count == 0) continue;
    const Extent input = extent_of(tensors[i].in, tensors[i].count * element, i);
    // The first output that ends behind the begin of the input, and the output after it: the first
    // may be the tensor's own.
    auto output = std::ranges::upper_bound(outputs, input.begin, {}, &Extent::end);
    for (; output != outputs.end() && output->begin < input.end; ++output) {
      if (output->tensor != i) return overlapping(i, output->tensor);
    }
  }
  return {};
}

// Checks the type, the operation, and that they fit together.
Status check_reduction(DataType type, const Reduction& reduction) {
  if (size_of(type) == 0) {
    return bad_argument("unknown data type " + std::to_string(static_cast<int>(type)));
  }
  if (reduction.op < ReduceOp::kSum || reduction.op > ReduceOp::kBitXor) {
    return bad_argument("unknown operation " + std::to_string(static_cast<int>(reduction.op)));
  }
  if (std::isnan(reduction.prescale) || std::isnan(reduction.postscale)) {
    return bad_argument("a scale is not a number");
  }
  const bool scales = reduction.prescale != 1 || reduction.postscale != 1;
  if (type == DataType::kBool && (reduction.op == ReduceOp::kAverage || scales)) {
    return bad_argument("bools have no average and no scale");
  }
  if (is_bitwise(reduction.op) && (is_float(type) || scales)) {
    return bad_argument(std::string(to_string(reduction.op)) + " requires " +
                        (scales ? "scales of 1" : "integers or bools, not ") +
                        (scales ? "" : std::string(to_string(type))));
  }
  if (reduction.op == ReduceOp::kAdasum && !is_float(type)) {
    return bad_argument("adasum requires floats, not " + std::string(to_string(type)));
  }
  return {};
}

Status check_no_adasum(const Reduction& reduction, const char* collective) {
  if (reduction.op != ReduceOp::kAdasum) return {};
  return bad_argument(std::string("adasum works in an all_reduce, not in a ") + collective);
}

std::uint64_t sum_before(std::span<const std::uint64_t> lengths, int rank) {
  return sum_of(lengths.first(static_cast<std::size_t>(rank)));
}

const std::byte* at(const void* data, std::uint64_t offset) {
  return static_cast<const std::byte*>(data) + offset;
}

}  // namespace

Error bad_argument(std::string message) {
  return {ErrorCode::kBadArgument, std::move(message)};
}

Error about(std::string_view name, Error error) {
  error.message = "'" + std::string(name) + "': " + error.message;
  return error;
}

Status check_buffer(const void* data, std::uint64_t bytes) {
  if (data != nullptr || bytes == 0) return {};
  return bad_argument("the buffer is null, but its length is not 0");
}

Result<std::uint64_t> check_all_reduce(std::span<const Tensor> tensors, DataType type,
                                       const Reduction& reduction) {
  if (Status checked = check_reduction(type, reduction); !checked) return checked.error();
  const std::size_t element = size_of(type);
  std::uint64_t room = kMostBytes / element;
  std::uint64_t count = 0;
  for (const Tensor& tensor : tensors) {
    if (tensor.count > room) return too_long();
    room -= tensor.count;
    count += tensor.count;
    const std::uint64_t bytes = tensor.count * element;
    if (Status checked = check_buffers({tensor.in, bytes}, {tensor.out, bytes}); !checked) {
      return checked.error();
    }
  }
  if (tensors.size() > 1) {
    if (Status checked = check_apart(tensors, element); !checked) return checked.error();
  }
  return count;
}

Status check_reduce_scatter(const void* in, const void* out, std::span<const std::uint64_t> counts,
                            DataType type, const Reduction& reduction, Place here) {
  if (Status checked = check_no_adasum(reduction, "reduce_scatter"); !checked) return checked;
  if (Status checked = check_reduction(type, reduction); !checked) return checked;
  const std::size_t element = size_of(type);
  if (Status checked = check_lengths(counts, element, here.size); !checked) return checked;
  const std::uint64_t all = sum_of(counts) * element;
  const std::uint64_t own = counts[static_cast<std::size_t>(here.rank)] * element;
  const std::uint64_t before = sum_before(counts, here.rank) * element;
  if (Status checked = check_buffer(in, all); !checked) return checked;
  if (Status checked = check_buffer(out, own); !checked) return checked;
  if (own == 0 || out == at(in, before)) return {};
  if (in == out) {
    return bad_argument("an in-place output must be this rank's own part of the input");
  }
  return check_buffers({in, all}, {out, own});
}

Status check_reduce(const void* in, const void* out, std::uint64_t count, DataType type,
                    const Reduction& reduction, int root, Place here) {
  if (Status checked = check_reduction(type, reduction); !checked) return checked;
  if (count > kMostBytes / size_of(type)) return too_long();
  if (Status checked = check_rank("the root of a reduce", root, here.size); !checked) {
    return checked;
  }
  if (Status checked = check_no_adasum(reduction, "reduce"); !checked) return checked;
  const std::uint64_t bytes = count * size_of(type);
  return check_buffers({in, bytes}, {out, root == here.rank ? bytes : 0});
}

Status check_all_gather(const void* part, const void* all,
                        std::span<const std::uint64_t> bytes_of_rank, Place here) {
  if (Status checked = check_lengths(bytes_of_rank, 1, here.size); !checked) return checked;
  const std::uint64_t own = bytes_of_rank[static_cast<std::size_t>(here.rank)];
  const std::uint64_t sum = sum_of(bytes_of_rank);
  if (Status checked = check_buffer(part, own); !checked) return checked;
  if (Status checked = check_buffer(all, sum); !checked) return checked;
  if (own == 0 || part == at(all, sum_before(bytes_of_rank, here.rank))) return {};
  if (part == all) {
    return bad_argument("an in-place part must be this rank's own part of the output");
  }
  return check_buffers({part, own}, {all, sum});
}

Status check_broadcast(const void* data, std::uint64_t bytes, int root, int size) {
  if (Status checked = check_buffer(data, bytes); !checked) return checked;
  return check_rank("the root of a broadcast", root, size);
}

Status check_all_to_all(const void* in, std::span<const std::uint64_t> sent, const void* out,
                        std::span<const std::uint64_t> received, int size) {
  if (Status checked = check_lengths(sent, 1, size); !checked) return checked;
  if (Status checked = check_lengths(received, 1, size); !checked) return checked;
  const Buffer from{in, sum_of(sent)};
  const Buffer to{out, sum_of(received)};
  if (Status checked = check_buffers(from, to); !checked) return checked;
  if (in == out && from.bytes > 0 && to.bytes > 0) {
    return bad_argument("an all_to_all cannot work in place");
  }
  return {};
}

Status check_rank(std::string_view what, int rank, int size) {
  if (rank >= 0 && rank < size) return {};
  return bad_argument(std::string(what) + ", rank " + std::to_string(rank) +
                      ", is not in a world of " + std::to_string(size));
}

Status check_partner(std::string_view what, int partner, Place here) {
  if (Status checked = check_rank(what, partner, here.size); !checked) return checked;
  if (partner != here.rank) return {};
  return bad_argument(std::string(what) + ", rank " + std::to_string(partner) +
                      ", is the calling rank itself; a message requires two ranks");
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
