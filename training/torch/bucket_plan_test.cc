#include "bucket_plan.h"

#include <gtest/gtest.h>

namespace muster::training {
namespace {

using collective::DataType;
using Order = std::vector<std::uint32_t>;

TEST(BucketPlan, FillsBucketsInTheOrderGivenUntilTheyAreFull) {
  const std::vector<GradientShape> gradients(5, {4, DataType::kFloat32});  // 16 bytes each
  EXPECT_EQ(plan_buckets(gradients, {4, 3, 2, 1, 0}, 32),
            (std::vector<BucketPlan>{{4, 3}, {2, 1}, {0}}));
  EXPECT_EQ(plan_buckets(gradients, {4, 3, 2, 1, 0}, 1'000),
            (std::vector<BucketPlan>{{4, 3, 2, 1, 0}}));
}

TEST(BucketPlan, GivesALargeGradientABucketOfItsOwn) {
  const std::vector<GradientShape> gradients = {
      {1, DataType::kFloat64}, {100, DataType::kFloat64}, {1, DataType::kFloat64}};
  EXPECT_EQ(plan_buckets(gradients, {0, 1, 2}, 64), (std::vector<BucketPlan>{{0}, {1}, {2}}));
}

TEST(BucketPlan, NeverMixesTypes) {
  const std::vector<GradientShape> gradients = {{4, DataType::kFloat32},
                                                {4, DataType::kFloat64},
                                                {4, DataType::kFloat32},
                                                {4, DataType::kFloat64}};
  EXPECT_EQ(plan_buckets(gradients, {0, 1, 2, 3}, 1'000),
            (std::vector<BucketPlan>{{0, 2}, {1, 3}}));
}

TEST(BucketPlan, AcceptsGradientsWithoutElements) {
  EXPECT_EQ(plan_buckets({{0, DataType::kFloat32}}, {0}, 1), (std::vector<BucketPlan>{{0}}));
}

TEST(CompletedOrder, AppendsMissingIndicesInTheirFormerOrder) {
  EXPECT_EQ(completed_order({2, 0}, {4, 3, 2, 1, 0}), (Order{2, 0, 4, 3, 1}));
  EXPECT_EQ(completed_order({}, {1, 0}), (Order{1, 0}));
}

TEST(CompletedOrder, IgnoresDuplicatesAndUnknownIndices) {
  EXPECT_EQ(completed_order({1, 1, 7}, {0, 1}), (Order{1, 0}));
}

}  // namespace
}  // namespace muster::training
