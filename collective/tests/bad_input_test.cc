// Buffers and values that are rare in tests and common in practice, on two ranks that share memory
// or use TCP, and worlds of more ranks than cores.
#include <gtest/gtest.h>
#include <muster/collective/testing/spawn_ranks.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "muster/collective/communicator.h"

namespace muster::collective {
namespace {

using testing::Placement;
using testing::spawn_ranks;

// Converts floats of every width to their bits and back.
template <typename T>
T narrowed(float value) {
  return static_cast<T>(value);
}
template <>
BFloat16 narrowed(float value) {
  return {static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16U)};
}

template <typename T>
float widened(T value) {
  return static_cast<float>(value);
}
template <>
float widened(BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16U);
}

// Values at any address, aligned or not.
template <typename T>
class Values {
 public:
  Values(std::size_t count, std::size_t offset) : bytes_(count * sizeof(T) + offset + 1) {
    // The memory has the largest alignment, so that `offset` alone determines the alignment of the
    // values.
    const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
    EXPECT_EQ(address % alignof(std::max_align_t), 0u);
    first_ = offset;
    end_ = offset + count * sizeof(T);
    bytes_[end_] = kGuard;
    if (offset > 0) bytes_[offset - 1] = kGuard;
  }

  std::byte* data() { return bytes_.data() + first_; }
  float at(std::size_t i) const {
    T value;
    std::memcpy(&value, bytes_.data() + first_ + i * sizeof(T), sizeof value);
    return widened(value);
  }
  void put(std::size_t i, float number) {
    const T value = narrowed<T>(number);
    std::memcpy(bytes_.data() + first_ + i * sizeof(T), &value, sizeof value);
  }
  bool is_guarded() const {
    return bytes_[end_] == kGuard && (first_ == 0 || bytes_[first_ - 1] == kGuard);
  }

 private:
  static constexpr std::byte kGuard{0xa5};

  std::vector<std::byte> bytes_;
  std::size_t first_;
  std::size_t end_;
};

class TwoRanks : public ::testing::TestWithParam<Placement> {
 public:
  static void spawn(const std::function<void(Communicator&)>& body) {
    spawn_ranks(2, body, testing::kPatience, GetParam());
  }
};

INSTANTIATE_TEST_SUITE_P(Over, TwoRanks,
                         ::testing::Values(Placement::one_host(), Placement::host_each()),
                         [](const auto& placement) {
                           return placement.param.ranks_per_host == 1 ? "Tcp" : "SharedMemory";
                         });

float small_whole(int rank, std::size_t i) {
  return static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 3) % 13) - 6;
}

// The offsets of buffers differ between the ranks, and between the buffers of a rank.
template <typename T>
void expect_sum_at(Communicator& world, std::size_t count, std::size_t offset, bool in_place) {
  const auto rank = static_cast<std::size_t>(world.rank());
  Values<T> in(count, (offset + 3 * rank) % 8);
  Values<T> other(count, (offset * 3 + rank) % 8);
  for (std::size_t i = 0; i < count; ++i) in.put(i, small_whole(world.rank(), i));
  Values<T>& out = in_place ? in : other;
  const Status done =
      world.all_reduce(in.data(), out.data(), count, kDataTypeOf<T>, ReduceOp::kSum);
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_TRUE(in.is_guarded() && out.is_guarded());
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(out.at(i), small_whole(0, i) + small_whole(1, i))
        << to_string(kDataTypeOf<T>) << " at " << i << " of " << count << ", offset " << offset;
  }
}

TEST_P(TwoRanks, ReduceBuffersThatAreNotAligned) {
  spawn([](Communicator& world) {
    for (std::size_t offset = 1; offset < 8; ++offset) {
      // Sizes for the entries of a call, for one step, and for slices and chunks.
      for (const std::size_t count : {1, 61, 1009, 30'011, 300'007}) {
        const bool in_place = (offset + count / 2) % 2 == 0;
        expect_sum_at<float>(world, count, offset, in_place);
        expect_sum_at<double>(world, count, offset, in_place);
        expect_sum_at<BFloat16>(world, count, offset, in_place);
      }
    }
  });
}

TEST_P(TwoRanks, GatherAndBroadcastBuffersThatAreNotAligned) {
  spawn([](Communicator& world) {
    for (std::size_t offset = 1; offset < 8; ++offset) {
      constexpr std::size_t kCount = 30'011;
      Values<float> part(kCount, offset);
      Values<float> all(2 * kCount, 8 - offset);
      for (std::size_t i = 0; i < kCount; ++i) part.put(i, small_whole(world.rank(), i));
      ASSERT_TRUE(world.all_gather(part.data(), kCount * sizeof(float), all.data()));
      ASSERT_TRUE(world.broadcast(part.data(), kCount * sizeof(float), 1));
      for (std::size_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(all.at(i), small_whole(0, i));
        ASSERT_EQ(all.at(kCount + i), small_whole(1, i));
        ASSERT_EQ(part.at(i), small_whole(1, i));
      }
    }
  });
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// One rank has normal values; every other value of the other rank is a NaN or an infinity.
float healthy(std::size_t i) {
  return static_cast<float>(i % 3 + 1);
}
float sick(std::size_t i) {
  constexpr std::array kSick = {kNan, kInfinity, -kInfinity, -kNan};
  return i % 2 == 0 ? healthy(i) : kSick[i / 2 % kSick.size()];
}

float expected(ReduceOp op, float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return kNan;
  if (op == ReduceOp::kMin) return std::min(a, b);
  if (op == ReduceOp::kMax) return std::max(a, b);
  if (op == ReduceOp::kProduct) return a * b;
  return op == ReduceOp::kAverage ? (a + b) / 2 : a + b;
}

bool same(float a, float b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

template <typename T>
void expect_sickness_to_show(Communicator& world, std::size_t count, ReduceOp op, int sick_rank) {
  Values<T> values(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    values.put(i, world.rank() == sick_rank ? sick(i) : healthy(i));
  }
  ASSERT_TRUE(world.all_reduce(values.data(), count, kDataTypeOf<T>, op));
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_PRED2(same, values.at(i), expected(op, healthy(i), sick(i)))
        << to_string(op) << " of " << to_string(kDataTypeOf<T>) << " at " << i;
  }
}

TEST_P(TwoRanks, DoNotHideTheNansAndInfinitiesOfOneRank) {
  spawn([](Communicator& world) {
    for (const ReduceOp op :
         {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct}) {
      for (const std::size_t count : {5, 61, 1009, 100'003}) {
        for (const int sick_rank : {0, 1}) {
          expect_sickness_to_show<float>(world, count, op, sick_rank);
          expect_sickness_to_show<double>(world, count, op, sick_rank);
          expect_sickness_to_show<BFloat16>(world, count, op, sick_rank);
        }
      }
    }
  });
}

TEST_P(TwoRanks, GetANanFromAdasumIfOneRankHasANan) {
  spawn([](Communicator& world) {
    std::vector<float> values(1009, 1);
    if (world.rank() == 1) values[500] = kNan;
    ASSERT_TRUE(world.all_reduce(values.data(), values.size(), ReduceOp::kAdasum));
    EXPECT_TRUE(std::isnan(values[500]));
  });
}

// Infinities of both signs, on both ranks.
TEST_P(TwoRanks, AddInfinitiesOfBothSignsToANan) {
  spawn([](Communicator& world) {
    for (const std::size_t count : {3, 1009, 100'003}) {
      std::vector<float> values(count, world.rank() == 0 ? kInfinity : -kInfinity);
      ASSERT_TRUE(world.all_reduce(values.data(), count, ReduceOp::kSum));
      EXPECT_TRUE(std::ranges::all_of(values, [](float value) { return std::isnan(value); }));
    }
  });
}

// 1 to 16 ranks on any number of cores.
class ManyRanks : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Of, ManyRanks, ::testing::Range(1, 17));

TEST_P(ManyRanks, ReduceEverySizeOnAnyNumberOfCores) {
  const int size = GetParam();
  spawn_ranks(size, [&](Communicator& world) {
    for (const std::size_t count : {0, 1, 2, 127, 1009, 16'411, 200'003}) {
      std::vector<std::int32_t> values(count);
      for (std::size_t i = 0; i < count; ++i) {
        values[i] = static_cast<std::int32_t>(i) * (world.rank() + 1);
      }
      ASSERT_TRUE(world.all_reduce(values.data(), count, ReduceOp::kSum));
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(values[i], static_cast<std::int32_t>(i) * (size * (size + 1) / 2))
            << "at " << i << " of " << count;
      }
    }
  });
}

}  // namespace
}  // namespace muster::collective
