#include "call/call.h"

#include <algorithm>
#include <bit>
#include <cstdio>

#include "muster/collective/types.h"

namespace muster::collective {
namespace {

constexpr std::uint32_t kCallMagic = 0x4f43534d;  // "MSCO"

// The finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): every bit of the input flips half
// of the bits of the result.
std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

std::uint64_t combined(std::uint64_t hash, std::uint64_t value) {
  return mixed(hash + 0x9e3779b97f4a7c15U + value);
}

std::string number(double value) {
  std::array<char, 32> text = {};
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

std::string scales(const Reduction& reduction) {
  std::string text;
  if (reduction.prescale != 1) text += ", prescale " + number(reduction.prescale);
  if (reduction.postscale != 1) text += ", postscale " + number(reduction.postscale);
  return text;
}

std::string reduction_text(const Call& call) {
  return std::to_string(call.count) + " " + std::string(to_string(call.type)) + ", " +
         std::string(to_string(call.reduction.op)) + scales(call.reduction);
}

// Two calls may differ only in the lengths of their parts, so messages have a short hash of the
// lengths.
std::string shape_of(const Call& call) {
  if (call.shape == 0) return "";
  std::array<char, 32> text = {};
  std::snprintf(text.data(), text.size(), ", parts %04x",
                static_cast<unsigned>(call.shape & 0xffff));
  return text.data();
}

// Only the header between two ranks has a length for an all_to_all. The call as a whole has no
// length.
std::string pair_of(const Call& call) {
  return call.count == 0 ? "" : " with " + std::to_string(call.count) + " bytes for this pair";
}

std::string what(const Call& call) {
  const std::string shape = shape_of(call);
  switch (call.kind) {
    case CallKind::kAllReduce:
      return "all_reduce of " + reduction_text(call) + shape;
    case CallKind::kReduceScatter:
      return "reduce_scatter of " + reduction_text(call) + shape;
    case CallKind::kReduce:
      return "reduce of " + reduction_text(call) + " to rank " + std::to_string(call.root);
    case CallKind::kBroadcast:
      return "broadcast of " + std::to_string(call.count) + " bytes from rank " +
             std::to_string(call.root);
    case CallKind::kAllGather:
      return "all_gather of " + std::to_string(call.count) + " bytes" + shape;
    case CallKind::kAllToAll:
      return "all_to_all" + pair_of(call);
    case CallKind::kBarrier:
      return "barrier";
    case CallKind::kSend:
      return "send of " + std::to_string(call.count) + " bytes to rank " +
             std::to_string(call.root);
  }
  return "an unknown collective";
}

}  // namespace

std::uint64_t hash_of(std::span<const std::uint64_t> lengths) {
  const bool are_equal =
      std::ranges::adjacent_find(lengths, std::ranges::not_equal_to{}) == lengths.end();
  return are_equal ? 0 : hash_of_list(lengths);
}

std::uint64_t hash_of_list(std::span<const std::uint64_t> lengths) {
  if (lengths.size() < 2) return 0;
  std::uint64_t hash = lengths.size();
  for (const std::uint64_t length : lengths) hash = combined(hash, length);
  return hash == 0 ? 1 : hash;
}

CallHeader encode(const Call& call) {
  const Bytes bytes = ByteWriter()
                          .number(kCallMagic)
                          .number(static_cast<std::uint8_t>(call.kind))
                          .number(static_cast<std::uint8_t>(call.type))
                          .number(static_cast<std::uint8_t>(call.reduction.op))
                          .number(std::uint8_t{0})
                          .number(static_cast<std::int32_t>(call.root))
                          .number(std::uint32_t{0})
                          .number(call.count)
                          .number(call.shape)
                          .number(call.sequence)
                          .number(std::bit_cast<std::uint64_t>(call.reduction.prescale))
                          .number(std::bit_cast<std::uint64_t>(call.reduction.postscale))
                          .take();
  CallHeader header;
  std::copy(bytes.begin(), bytes.end(), header.begin());
  return header;
}

std::optional<Call> decode(const CallHeader& header) {
  ByteReader reader(header);
  if (reader.number<std::uint32_t>() != kCallMagic) return std::nullopt;
  // A peer may send invalid values. The enums can hold any byte, and what() names an unknown value.
  Call call{.kind = CallKind{reader.number<std::uint8_t>()}};
  call.type = DataType{reader.number<std::uint8_t>()};
  call.reduction.op = ReduceOp{reader.number<std::uint8_t>()};
  reader.raw(1);
  call.root = reader.number<std::int32_t>();
  reader.raw(4);
  call.count = reader.number<std::uint64_t>();
  call.shape = reader.number<std::uint64_t>();
  call.sequence = reader.number<std::uint64_t>();
  call.reduction.prescale = std::bit_cast<double>(reader.number<std::uint64_t>());
  call.reduction.postscale = std::bit_cast<double>(reader.number<std::uint64_t>());
  return call;
}

// This is on the path of the smallest call. Therefore the fields are summed with odd factors, which
// the processor multiplies in parallel, and mixed only once.
std::uint64_t signature_of(const Call& call) {
  const std::uint64_t small =
      static_cast<std::uint64_t>(call.kind) | static_cast<std::uint64_t>(call.type) << 8U |
      static_cast<std::uint64_t>(call.reduction.op) << 16U |
      static_cast<std::uint64_t>(static_cast<std::uint32_t>(call.root)) << 32U;
  const std::uint64_t hash =
      mixed(small * 0x9e3779b97f4a7c15U + call.count * 0xc2b2ae3d27d4eb4fU +
            call.shape * 0x165667b19e3779f9U + call.sequence * 0x27d4eb2f165667c5U +
            std::bit_cast<std::uint64_t>(call.reduction.prescale) * 0xd6e8feb86659fd93U +
            std::bit_cast<std::uint64_t>(call.reduction.postscale) * 0xa0761d6478bd642fU);
  return hash == 0 ? 1 : hash;
}

std::string to_string(const Call& call) {
  return "call " + std::to_string(call.sequence) + " (" + what(call) + ")";
}

Error mismatch(const Asked& one, const Asked& other) {
  const Asked& first = one.rank < other.rank ? one : other;
  const Asked& second = one.rank < other.rank ? other : one;
  const auto sentence = [](const Asked& asked) {
    return "rank " + std::to_string(asked.rank) + " on host " + asked.host + " makes " +
           (asked.call ? to_string(*asked.call) : "no call of this library");
  };
  return {ErrorCode::kMismatch, sentence(first) + ", but " + sentence(second),
          "every rank must make the same calls in the same order"};
}

std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::kInt8:
    case DataType::kUInt8:
    case DataType::kBool:
      return 1;
    case DataType::kFloat16:
    case DataType::kBFloat16:
    case DataType::kInt16:
    case DataType::kUInt16:
      return 2;
    case DataType::kFloat32:
    case DataType::kInt32:
    case DataType::kUInt32:
      return 4;
    case DataType::kFloat64:
    case DataType::kInt64:
    case DataType::kUInt64:
      return 8;
  }
  return 0;
}

std::string_view to_string(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return "float32";
    case DataType::kFloat64:
      return "float64";
    case DataType::kInt32:
      return "int32";
    case DataType::kInt64:
      return "int64";
    case DataType::kFloat16:
      return "float16";
    case DataType::kBFloat16:
      return "bfloat16";
    case DataType::kInt8:
      return "int8";
    case DataType::kUInt8:
      return "uint8";
    case DataType::kInt16:
      return "int16";
    case DataType::kUInt16:
      return "uint16";
    case DataType::kUInt32:
      return "uint32";
    case DataType::kUInt64:
      return "uint64";
    case DataType::kBool:
      return "bool";
  }
  return "an unknown type";
}

std::string_view to_string(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kAverage:
      return "average";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kProduct:
      return "product";
    case ReduceOp::kAdasum:
      return "adasum";
    case ReduceOp::kBitAnd:
      return "bitwise and";
    case ReduceOp::kBitOr:
      return "bitwise or";
    case ReduceOp::kBitXor:
      return "bitwise exclusive or";
  }
  return "an unknown operation";
}

bool is_bitwise(ReduceOp op) {
  return op == ReduceOp::kBitAnd || op == ReduceOp::kBitOr || op == ReduceOp::kBitXor;
}

bool is_float(DataType type) {
  return type == DataType::kFloat16 || type == DataType::kBFloat16 || type == DataType::kFloat32 ||
         type == DataType::kFloat64;
}

}  // namespace muster::collective
