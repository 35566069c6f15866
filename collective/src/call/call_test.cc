#include "call/call.h"

#include <gtest/gtest.h>

#include <limits>

namespace muster::collective {
namespace {

const Call kCall{.kind = CallKind::kAllReduce,
                 .type = DataType::kFloat32,
                 .reduction = ReduceOp::kAverage,
                 .count = 5,
                 .sequence = 3};

TEST(Call, SurvivesEncodingAndDecoding) {
  const Call far{
      .kind = CallKind::kBroadcast, .root = 7, .count = 1ULL << 40, .sequence = 1ULL << 33};
  const Call scaled{.kind = CallKind::kReduceScatter,
                    .type = DataType::kBFloat16,
                    .reduction = {ReduceOp::kSum, 0.5, 1e-300},
                    .count = 12,
                    .shape = 99,
                    .sequence = 1};
  for (const Call& call : {kCall, far, scaled}) EXPECT_EQ(decode(encode(call)), call);
}

TEST(Call, IsNotDecodedFromOtherBytes) {
  CallHeader header = encode(kCall);
  header[0] = std::byte{0};
  EXPECT_EQ(decode(header), std::nullopt);
}

TEST(Call, IsDescribedInMessages) {
  EXPECT_EQ(to_string(kCall), "call 3 (all_reduce of 5 float32, average)");
  EXPECT_EQ(to_string(Call{.kind = CallKind::kBroadcast, .root = 2, .count = 8, .sequence = 1}),
            "call 1 (broadcast of 8 bytes from rank 2)");
  EXPECT_EQ(to_string(Call{.kind = CallKind::kAllGather, .count = 8, .sequence = 2}),
            "call 2 (all_gather of 8 bytes)");
  EXPECT_EQ(to_string(Call{.kind = CallKind::kBarrier, .sequence = 9}), "call 9 (barrier)");
  EXPECT_EQ(to_string(Call{.kind = CallKind::kReduce,
                           .type = DataType::kBFloat16,
                           .reduction = {ReduceOp::kSum, 0.5, 2},
                           .root = 1,
                           .count = 4,
                           .sequence = 1}),
            "call 1 (reduce of 4 bfloat16, sum, prescale 0.5, postscale 2 to rank 1)");
}

TEST(Call, HasASignatureThatDependsOnEveryField) {
  const auto changed = [](auto change) {
    Call call = kCall;
    change(call);
    return signature_of(call);
  };
  const std::vector<std::uint64_t> signatures = {
      signature_of(kCall),
      changed([](Call& call) { call.kind = CallKind::kReduceScatter; }),
      changed([](Call& call) { call.type = DataType::kInt32; }),
      changed([](Call& call) { call.reduction.op = ReduceOp::kSum; }),
      changed([](Call& call) { call.reduction.prescale = 2; }),
      changed([](Call& call) { call.reduction.postscale = 2; }),
      changed([](Call& call) { call.root = 1; }),
      changed([](Call& call) { call.count = 6; }),
      changed([](Call& call) { call.shape = 1; }),
      changed([](Call& call) { call.sequence = 4; }),
  };
  for (std::size_t i = 0; i < signatures.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(signatures[i], signatures[j]) << i << ", " << j;
  }
}

TEST(HashOf, IsZeroForEqualLengthsOnly) {
  const auto hash = [](std::vector<std::uint64_t> lengths) { return hash_of(lengths); };
  EXPECT_EQ(hash({}), 0u);
  EXPECT_EQ(hash({7}), 0u);
  EXPECT_EQ(hash({3, 3, 3}), 0u);
  EXPECT_NE(hash({3, 4}), 0u);
  EXPECT_NE(hash({3, 4}), hash({4, 3}));
  EXPECT_NE(hash({1, 2, 3}), hash({1, 2}));
}

TEST(HashOfList, DependsOnEveryLengthAndTheirNumber) {
  const auto hash = [](std::vector<std::uint64_t> lengths) { return hash_of_list(lengths); };
  EXPECT_EQ(hash({}), 0u);
  EXPECT_EQ(hash({8}), 0u);
  EXPECT_NE(hash({4, 4}), 0u);
  EXPECT_NE(hash({4, 4}), hash({2, 2, 2, 2}));
  EXPECT_NE(hash({4, 4}), hash({3, 5}));
  EXPECT_NE(hash({0, 8}), hash({8, 0}));
}

TEST(Mismatch, NamesTheLowerRankFirst) {
  const Asked one{1, "b", Call{.kind = CallKind::kBarrier, .sequence = 2}};
  const Asked other{0, "a", std::nullopt};
  EXPECT_EQ(mismatch(one, other).message,
            "rank 0 on host a makes no call of this library, but rank 1 on host b makes call 2 "
            "(barrier)");
  EXPECT_EQ(mismatch(one, other).message, mismatch(other, one).message);
}

}  // namespace
}  // namespace muster::collective
