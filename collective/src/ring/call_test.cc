#include "ring/call.h"

#include <gtest/gtest.h>

namespace muster::collective {
namespace {

const Call kCall{CallKind::kAllReduce, DataType::kFloat32, ReduceOp::kAverage, 0, 5, 3};

TEST(Call, IsTheSameAfterItsHeader) {
  const Call far{
      .kind = CallKind::kBroadcast, .root = 7, .count = 1ULL << 40, .sequence = 1ULL << 33};
  EXPECT_EQ(decode(encode(kCall)), kCall);
  EXPECT_EQ(decode(encode(far)), far);
}

TEST(Call, IsNotReadFromOtherBytes) {
  CallHeader header = encode(kCall);
  header[0] = std::byte{0};
  EXPECT_EQ(decode(header), std::nullopt);
}

TEST(Call, SaysWhatWasAskedFor) {
  EXPECT_EQ(to_string(kCall), "call 3 (all_reduce of 5 float32, average)");
  EXPECT_EQ(to_string(Call{.kind = CallKind::kBroadcast, .root = 2, .count = 8, .sequence = 1}),
            "call 1 (broadcast of 8 bytes from rank 2)");
  EXPECT_EQ(to_string(Call{.kind = CallKind::kAllGather, .count = 8, .sequence = 2}),
            "call 2 (all_gather of 8 bytes a rank)");
  EXPECT_EQ(to_string(Call{.kind = CallKind::kBarrier, .sequence = 9}), "call 9 (barrier)");
}

}  // namespace
}  // namespace muster::collective
