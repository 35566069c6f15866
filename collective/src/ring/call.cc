#include "ring/call.h"

#include <algorithm>

namespace muster::collective {
namespace {

constexpr std::uint32_t kMagic = 0x4f43534d;  // "MSCO"

std::string what(const Call& call) {
  switch (call.kind) {
    case CallKind::kAllReduce:
      return "all_reduce of " + std::to_string(call.count) + " " +
             std::string(to_string(call.type)) + ", " + std::string(to_string(call.op));
    case CallKind::kBroadcast:
      return "broadcast of " + std::to_string(call.count) + " bytes from rank " +
             std::to_string(call.root);
    case CallKind::kAllGather:
      return "all_gather of " + std::to_string(call.count) + " bytes a rank";
    case CallKind::kBarrier:
      return "barrier";
  }
  return "an unknown collective";
}

}  // namespace

CallHeader encode(const Call& call) {
  const Bytes bytes = ByteWriter()
                          .number(kMagic)
                          .number(static_cast<std::uint8_t>(call.kind))
                          .number(static_cast<std::uint8_t>(call.type))
                          .number(static_cast<std::uint8_t>(call.op))
                          .number(std::uint8_t{0})
                          .number(static_cast<std::int32_t>(call.root))
                          .number(std::uint32_t{0})
                          .number(call.count)
                          .number(call.sequence)
                          .take();
  CallHeader header;
  std::copy(bytes.begin(), bytes.end(), header.begin());
  return header;
}

std::optional<Call> decode(const CallHeader& header) {
  ByteReader reader(header);
  if (reader.number<std::uint32_t>() != kMagic) return std::nullopt;
  // A peer may send what is no value of ours: the types hold any byte, and what() names it.
  Call call{CallKind{reader.number<std::uint8_t>()}};
  call.type = DataType{reader.number<std::uint8_t>()};
  call.op = ReduceOp{reader.number<std::uint8_t>()};
  reader.raw(1);
  call.root = reader.number<std::int32_t>();
  reader.raw(4);
  call.count = reader.number<std::uint64_t>();
  call.sequence = reader.number<std::uint64_t>();
  return call;
}

std::string to_string(const Call& call) {
  return "call " + std::to_string(call.sequence) + " (" + what(call) + ")";
}

}  // namespace muster::collective
