#include "job/amounts.h"

#include <gtest/gtest.h>

namespace muster::job {

namespace {

constexpr int64_t kGib = int64_t{1} << 30;

TEST(AmountText, UsesWholeNumbersAndDecimals) {
  EXPECT_EQ(amount_text(Resource::kGpu, 1000), "1 GPU");
  EXPECT_EQ(amount_text(Resource::kGpu, 2000), "2 GPUs");
  EXPECT_EQ(amount_text(Resource::kGpu, 500), "0.5 GPU");
  EXPECT_EQ(amount_text(Resource::kGpu, 1250), "1.25 GPUs");
  EXPECT_EQ(amount_text(Resource::kGpu, 333), "0.333 GPU");
  EXPECT_EQ(amount_text(Resource::kGpu, 0), "0 GPUs");
  EXPECT_EQ(amount_text(Resource::kGpu, -1500), "-1.5 GPUs");
  EXPECT_EQ(amount_text(Resource::kGpu, kUnlimited), "unlimited GPUs");
  EXPECT_EQ(amount_text(Resource::kCpu, 3000), "3 CPUs");
  EXPECT_EQ(amount_text(Resource::kCpu, 1005), "1.005 CPUs");
}

TEST(AmountText, WritesMemoryInTheBestUnit) {
  EXPECT_EQ(amount_text(Resource::kMemory, 16 * kGib), "16 GiB of memory");
  EXPECT_EQ(amount_text(Resource::kMemory, 3 * kGib / 2), "1.5 GiB of memory");
  EXPECT_EQ(amount_text(Resource::kMemory, 512 << 20), "512 MiB of memory");
  EXPECT_EQ(amount_text(Resource::kMemory, 1023), "1023 B of memory");
  EXPECT_EQ(amount_text(Resource::kMemory, 0), "0 B of memory");
  EXPECT_EQ(amount_text(Resource::kMemory, kUnlimited), "unlimited memory");
  EXPECT_EQ(amount_text(Resource::kMemory, kUnlimited - 1), "2 EiB of memory");
  EXPECT_EQ(amount_text(Resource::kMemory, -kGib), "-1 GiB of memory");
}

TEST(AmountText, ListsTheAmountsThatAreNotZero) {
  EXPECT_EQ(amounts_text({2000, 4000, 16 * kGib}), "2 GPUs, 4 CPUs and 16 GiB of memory");
  EXPECT_EQ(amounts_text({0, 500, 0}), "0.5 CPU");
  EXPECT_EQ(amounts_text(kNothing), "nothing");
}

TEST(AmountText, DescribesTheClaimOfATask) {
  EXPECT_EQ(claim_text({.gpus = 1, .cpu_milli = 2000}), "1 GPU and 2 CPUs");
  EXPECT_EQ(claim_text({.gpu_share_milli = 500}), "0.5 GPU");
  EXPECT_EQ(claim_text({.gpu_memory_bytes = 10 * kGib, .memory_bytes = kGib}),
            "10 GiB of GPU memory and 1 GiB of memory");
  EXPECT_EQ(claim_text({}), "");
}

}  // namespace

}  // namespace muster::job
