// Plans and passes without a socket: a ring of passes in memory, between which bytes are handed in
// bites of any size.
#include "ring/pass.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <numeric>
#include <random>

namespace muster::collective {
namespace {

constexpr std::size_t kScratch = 64;

struct Rank {
  Rank(Place place, Plan its_plan)
      : plan(std::move(its_plan)), pass(place, CallHeader{}, plan, scratch) {}

  Plan plan;
  alignas(8) std::array<std::byte, kScratch> scratch = {};
  Pass pass;
};

// Moves bytes round the ring until all are done, in random bites, and returns how many payload
// bytes each rank sent. Fails the test where nothing moves any more.
std::vector<std::uint64_t> run(std::deque<Rank>& ring) {
  std::mt19937 random(1);
  std::vector<std::uint64_t> sent(ring.size());
  const auto done = [&] {
    return std::ranges::all_of(ring, [](const Rank& rank) { return rank.pass.done(); });
  };
  while (!done()) {
    bool moved = false;
    for (std::size_t i = 0; i < ring.size(); ++i) {
      Pass& right = ring[(i + 1) % ring.size()].pass;
      const ByteView from = ring[i].pass.to_send();
      const std::span<std::byte> to = right.to_receive();
      const std::size_t bite = std::min({from.size(), to.size(), std::size_t{1 + random() % 50}});
      if (bite == 0) continue;
      std::memcpy(to.data(), from.data(), bite);
      ring[i].pass.sent(bite);
      right.received(bite);
      sent[i] += bite;
      moved = true;
    }
    if (!moved) {
      ADD_FAILURE() << "the ring is stuck";
      break;
    }
  }
  for (std::uint64_t& bytes : sent) bytes -= kCallHeaderBytes;
  return sent;
}

template <typename T>
std::byte* bytes_of(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

// Rank r contributes r + 1 + i at element i.
std::vector<std::vector<double>> contributions(int size, std::size_t count) {
  std::vector<std::vector<double>> buffers(static_cast<std::size_t>(size),
                                           std::vector<double>(count));
  double first = 1;
  for (auto& buffer : buffers) std::iota(buffer.begin(), buffer.end(), first++);
  return buffers;
}

TEST(Pass, ReducesBuffersOfAnyLengthOnRingsOfAnySize) {
  for (int size = 2; size <= 8; ++size) {
    for (const std::size_t count : {0, 1, 2, 7, 13, 64, 1009}) {
      auto buffers = contributions(size, count);
      std::deque<Rank> ring;
      for (int rank = 0; rank < size; ++rank) {
        const Place place{rank, size};
        ring.emplace_back(
            place, plan_all_reduce(place, bytes_of(buffers[static_cast<std::size_t>(rank)]), count,
                                   DataType::kFloat64, ReduceOp::kAverage));
      }
      run(ring);
      for (const auto& buffer : buffers) {
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_EQ(buffer[i], static_cast<double>(i) + (size + 1) / 2.0) << size << " " << count;
        }
      }
    }
  }
}

TEST(Pass, SendsNoMoreThanAnAllReduceNeeds) {
  constexpr int kSize = 4;
  constexpr std::size_t kCount = 1000;
  auto buffers = contributions(kSize, kCount);
  std::deque<Rank> ring;
  for (int rank = 0; rank < kSize; ++rank) {
    const Place place{rank, kSize};
    ring.emplace_back(
        place, plan_all_reduce(place, bytes_of(buffers[static_cast<std::size_t>(rank)]), kCount,
                               DataType::kFloat64, ReduceOp::kSum));
  }
  const std::uint64_t least = 2 * (kSize - 1) * (kCount * sizeof(double)) / kSize;
  EXPECT_EQ(run(ring), std::vector<std::uint64_t>(kSize, least));
}

TEST(Pass, BroadcastsFromAnyRoot) {
  for (int size = 2; size <= 5; ++size) {
    for (int root = 0; root < size; ++root) {
      auto buffers = contributions(size, 100);
      const std::vector<double> expected = buffers[static_cast<std::size_t>(root)];
      std::deque<Rank> ring;
      for (int rank = 0; rank < size; ++rank) {
        const Place place{rank, size};
        ring.emplace_back(
            place,
            plan_broadcast(place, bytes_of(buffers[static_cast<std::size_t>(rank)]), 800, root));
      }
      run(ring);
      for (const auto& buffer : buffers) EXPECT_EQ(buffer, expected) << size << " " << root;
    }
  }
}

TEST(Pass, GathersThePartsInTheOrderOfTheRanks) {
  for (int size = 2; size <= 8; ++size) {
    std::vector<std::vector<char>> all(static_cast<std::size_t>(size),
                                       std::vector<char>(static_cast<std::size_t>(size) * 3, '?'));
    std::string expected;
    std::deque<Rank> ring;
    for (int rank = 0; rank < size; ++rank) {
      auto& mine = all[static_cast<std::size_t>(rank)];
      std::fill_n(mine.begin() + std::ptrdiff_t{3} * rank, 3, static_cast<char>('a' + rank));
      expected.append(3, static_cast<char>('a' + rank));
      ring.emplace_back(Place{rank, size}, plan_all_gather({rank, size}, bytes_of(mine), 3));
    }
    run(ring);
    for (const auto& gathered : all) {
      EXPECT_EQ(std::string(gathered.begin(), gathered.end()), expected);
    }
  }
}

TEST(Pass, SendsOnOnlyWhatItHasReduced) {
  std::vector<float> buffer = {1, 2, 3};
  const Plan plan =
      plan_all_reduce({0, 3}, bytes_of(buffer), 3, DataType::kFloat32, ReduceOp::kSum);
  alignas(8) std::array<std::byte, kScratch> scratch = {};
  Pass pass({0, 3}, CallHeader{}, plan, scratch);
  pass.sent(kCallHeaderBytes);
  pass.received(kCallHeaderBytes);
  pass.sent(4);  // its own segment

  const float other = 10;
  std::memcpy(pass.to_receive().data(), &other, 3);
  pass.received(3);
  EXPECT_TRUE(pass.to_send().empty()) << "an element that is not whole";

  std::memcpy(pass.to_receive().data(), reinterpret_cast<const std::byte*>(&other) + 3, 1);
  pass.received(1);
  ASSERT_EQ(pass.to_send().size(), 4u);
  EXPECT_EQ(*reinterpret_cast<const float*>(pass.to_send().data()), 13);
}

TEST(Pass, ShowsTheLeftHeaderOnceItIsWhole) {
  std::vector<float> buffer = {1, 2};
  const Plan plan =
      plan_all_reduce({0, 2}, bytes_of(buffer), 2, DataType::kFloat32, ReduceOp::kSum);
  alignas(8) std::array<std::byte, kScratch> scratch = {};
  Pass pass({0, 2}, CallHeader{}, plan, scratch);

  pass.received(kCallHeaderBytes - 1);
  EXPECT_EQ(pass.left_header(), nullptr);
  EXPECT_EQ(pass.to_receive().size(), 1u) << "nothing beyond the header before it was compared";
  pass.received(1);
  EXPECT_NE(pass.left_header(), nullptr);
}

}  // namespace
}  // namespace muster::collective
