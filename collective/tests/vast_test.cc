// Buffers with more bytes than a 32-bit number can count.
#include <gtest/gtest.h>
#include <muster/collective/testing/spawn_ranks.h>

#include "muster/collective/communicator.h"
#include "vast_buffer.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MUSTER_IS_SANITIZED 1
#endif

namespace muster::collective {
namespace {

using testing::Placement;
using testing::spawn_ranks;
using testing::VastBuffer;

std::byte byte_at(std::size_t i, int rank) {
  return std::byte(i * 7 + i / 4096 + static_cast<std::size_t>(rank) * 3);
}

void fill(std::span<std::byte> bytes, int rank) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte_at(i, rank);
}

std::byte added(std::byte a, std::byte b) {
  return std::byte(std::to_integer<unsigned>(a) + std::to_integer<unsigned>(b));
}

bool is_sum(std::span<const std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != added(byte_at(i, 0), byte_at(i, 1))) return false;
  }
  return true;
}

void fill(const VastBuffer& buffer, int rank) {
  fill(buffer.period(), rank);
  for (const std::span<std::byte> mark : buffer.marks()) fill(mark, rank);
}

void expect_sum(const VastBuffer& buffer) {
  EXPECT_TRUE(is_sum(buffer.period()));
  for (const std::span<std::byte> mark : buffer.marks()) {
    EXPECT_TRUE(is_sum(mark)) << "at " << mark.data() - buffer.data();
  }
}

class VastOn : public ::testing::TestWithParam<Placement> {
 protected:
  void SetUp() override {
#ifdef MUSTER_IS_SANITIZED
    GTEST_SKIP() << "the sanitizer's shadow memory is too small for this address space";
#endif
  }
};

INSTANTIATE_TEST_SUITE_P(Vast, VastOn,
                         ::testing::Values(Placement::one_host(), Placement::host_each()),
                         [](const auto& placement) {
                           return placement.param.ranks_per_host == 1 ? "Tcp" : "SharedMemory";
                         });

TEST_P(VastOn, ABufferIsReducedToItsLastByte) {
  spawn_ranks(
      2,
      [](Communicator& world) {
        const VastBuffer in;
        const VastBuffer out;
        fill(in, world.rank());
        const Status done = world.all_reduce(in.data(), out.data(), VastBuffer::kBytes,
                                             DataType::kInt8, ReduceOp::kSum);
        ASSERT_TRUE(done) << done.error().to_string();
        expect_sum(out);
      },
      2 * testing::kPatience, GetParam());
}

}  // namespace
}  // namespace muster::collective
