#include <gtest/gtest.h>

#include <numeric>

#include "shm/layout.h"
#include "shm/shm_world.h"

namespace muster::collective::shm {
namespace {

// Sizes around every limit: nothing, one line, one step, one chunk, several chunks.
constexpr std::uint64_t kCounts[] = {0,    1,    9,    10,      11,      512,     513,
                                     1024, 8191, 8192, 131'072, 131'073, 262'147, 1'000'003};

float value_of(int rank, std::uint64_t i) {
  return static_cast<float>((i * 7 + static_cast<std::uint64_t>(rank) * 3) % 101);
}

float sum_of(int size, std::uint64_t i) {
  float sum = 0;
  for (int rank = 0; rank < size; ++rank) sum += value_of(rank, i);
  return sum;
}

std::vector<float> values_of(int rank, std::uint64_t count) {
  std::vector<float> values(count);
  for (std::uint64_t i = 0; i < count; ++i) values[i] = value_of(rank, i);
  return values;
}

Call sum_call(std::uint64_t count, std::uint64_t sequence) {
  return {.kind = CallKind::kAllReduce,
          .type = DataType::kFloat32,
          .reduction = ReduceOp::kSum,
          .count = count,
          .sequence = sequence};
}

Piece piece_of(const float* in, float* out, std::uint64_t count) {
  return {reinterpret_cast<const std::byte*>(in), reinterpret_cast<std::byte*>(out), count};
}

void expect_sums(const float* values, std::uint64_t count, int size) {
  for (std::uint64_t i = 0; i < count; ++i) {
    ASSERT_EQ(values[i], sum_of(size, i)) << "element " << i << " of " << count;
  }
}

class ShmAllReduce : public ::testing::TestWithParam<int> {};

TEST_P(ShmAllReduce, AddsTheInputsOfAllRanks) {
  const int size = GetParam();
  on_host(size, [size](ShmBackend& host, int rank) {
    std::uint64_t sequence = 0;
    for (const std::uint64_t count : kCounts) {
      std::vector<float> values = values_of(rank, count);
      std::vector<float> out(count);
      Piece piece = piece_of(values.data(), out.data(), count);
      ASSERT_TRUE(host.all_reduce(sum_call(count, ++sequence), {&piece, 1}));
      expect_sums(out.data(), count, size);
      EXPECT_EQ(values, values_of(rank, count)) << "the input is unchanged";
      piece = piece_of(values.data(), values.data(), count);
      ASSERT_TRUE(host.all_reduce(sum_call(count, ++sequence), {&piece, 1}));
      expect_sums(values.data(), count, size);
    }
  });
}

TEST_P(ShmAllReduce, ReducesAListOfTensorsOfAnyLength) {
  const int size = GetParam();
  on_host(size, [size](ShmBackend& host, int rank) {
    std::vector<std::vector<float>> tensors;
    for (const std::uint64_t count : kCounts) tensors.push_back(values_of(rank, count));
    for (int round = 1; round <= 2; ++round) {
      std::vector<std::vector<float>> copies = tensors;
      std::vector<Piece> pieces;
      std::uint64_t count = 0;
      for (std::vector<float>& tensor : copies) {
        pieces.push_back(piece_of(tensor.data(), tensor.data(), tensor.size()));
        count += tensor.size();
      }
      ASSERT_TRUE(host.all_reduce(sum_call(count, static_cast<std::uint64_t>(round)), pieces));
      for (const std::vector<float>& tensor : copies) {
        expect_sums(tensor.data(), tensor.size(), size);
      }
    }
  });
}

TEST_P(ShmAllReduce, ReducesBuffersInTheArenaInPlace) {
  const int size = GetParam();
  constexpr std::uint64_t kArena = 16 << 20;
  const Layout layout = layout_of(size, kArena);
  on_host(
      size,
      [&](ShmBackend& host, int rank) {
        std::uint64_t sequence = 0;
        for (const std::uint64_t count : kCounts) {
          auto* const base = reinterpret_cast<float*>(host.memory() + layout.arenas +
                                                      static_cast<std::uint64_t>(rank) * kArena);
          float* const in = base + 16;
          float* const out = in + count + 5;
          for (const bool in_place : {false, true}) {
            const std::vector<float> values = values_of(rank, count);
            std::ranges::copy(values, in);
            // One tensor, and then the same data as a list of two.
            const std::uint64_t head = count / 3;
            float* const to = in_place ? in : out;
            const std::array<Piece, 2> pieces = {piece_of(in, to, head),
                                                 piece_of(in + head, to + head, count - head)};
            ASSERT_TRUE(host.all_reduce(sum_call(count, ++sequence), pieces));
            expect_sums(to, count, size);
            std::ranges::copy(values, in);
            const Piece piece = piece_of(in, to, count);
            ASSERT_TRUE(host.all_reduce(sum_call(count, ++sequence), {&piece, 1}));
            expect_sums(to, count, size);
          }
        }
      },
      kArena);
}

TEST_P(ShmAllReduce, WorksIfOnlySomeRanksUseTheArena) {
  const int size = GetParam();
  constexpr std::uint64_t kArena = 8 << 20;
  constexpr std::uint64_t kCount = 300'007;
  const Layout layout = layout_of(size, kArena);
  on_host(
      size,
      [&](ShmBackend& host, int rank) {
        std::vector<float> own = values_of(rank, kCount);
        float* values = own.data();
        if (rank % 2 == 0) {
          values = reinterpret_cast<float*>(host.memory() + layout.arenas +
                                            static_cast<std::uint64_t>(rank) * kArena);
          std::ranges::copy(own, values);
        }
        const Piece piece = piece_of(values, values, kCount);
        ASSERT_TRUE(host.all_reduce(sum_call(kCount, 1), {&piece, 1}));
        expect_sums(values, kCount, size);
      },
      kArena);
}

// In some of the calls the ranks measure their distance, which takes calls of its own.
TEST_P(ShmAllReduce, WorksAgainAndAgainIfOnlySomeRanksUseTheArena) {
  const int size = GetParam();
  constexpr std::uint64_t kArena = 1 << 20;
  constexpr std::uint64_t kCount = 32 << 10;
  const Layout layout = layout_of(size, kArena);
  on_host(
      size,
      [&](ShmBackend& host, int rank) {
        const std::vector<float> inputs = values_of(rank, kCount);
        std::vector<float> apart(kCount);
        auto* const shared = reinterpret_cast<float*>(host.memory() + layout.arenas +
                                                      static_cast<std::uint64_t>(rank) * kArena);
        for (std::uint64_t sequence = 1; sequence <= 200; ++sequence) {
          // All ranks, some of them, or none: the turns have different lengths.
          const bool uses_arena = sequence % 5 == 0 || (rank % 2 == 0 && sequence % 7 != 0);
          float* const values = uses_arena ? shared : apart.data();
          std::ranges::copy(inputs, values);
          const Piece piece = piece_of(values, values, kCount);
          const Status done = host.all_reduce(sum_call(kCount, sequence), {&piece, 1});
          ASSERT_TRUE(done) << "call " << sequence << ": " << done.error().to_string();
          expect_sums(values, kCount, size);
        }
      },
      kArena);
}

TEST_P(ShmAllReduce, RoundsSixteenBitFloatsOnce) {
  const int size = GetParam();
  on_host(size, [size](ShmBackend& host, int rank) {
    // 256 and then ones: in bfloat16 256 + 1 is 256, but 256 + 1 + 1 is 258 if rounded once.
    constexpr std::uint16_t kOne = 0x3f80;
    constexpr std::uint16_t k256 = 0x4380;
    for (const std::uint64_t count : {3, 5'000, 300'000}) {
      std::vector<std::uint16_t> values(count, rank == 0 ? k256 : kOne);
      const Piece piece{reinterpret_cast<const std::byte*>(values.data()),
                        reinterpret_cast<std::byte*>(values.data()), count};
      Call call = sum_call(count, count);
      call.type = DataType::kBFloat16;
      ASSERT_TRUE(host.all_reduce(call, {&piece, 1}));
      const auto exact = std::bit_cast<std::uint32_t>(static_cast<float>(256 + size - 1));
      const std::uint32_t rounded = (exact + 0x7fff + ((exact >> 16) & 1)) >> 16;
      for (const std::uint16_t value : values) ASSERT_EQ(value, rounded);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, ShmAllReduce, ::testing::Values(2, 3, 4, 5, 8));

TEST(Slices, CoverEveryElementOnce) {
  for (const int ranks : {1, 2, 3, 7}) {
    for (const std::uint64_t count : {0, 1, 63, 64, 65, 1000, 4096, 10'000}) {
      const Slices slices = Slices::of_chunks(count, 4096, ranks);
      std::uint64_t covered = 0;
      for (std::uint64_t round = 0; round < slices.rounds(); ++round) {
        std::uint64_t at = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          EXPECT_EQ(slices.offset(round, rank), at);
          EXPECT_LE(slices.length(round, rank), slices.longest(round));
          at += slices.length(round, rank);
        }
        EXPECT_EQ(at, slices.count(round));
        covered += at;
      }
      EXPECT_EQ(covered, count);
    }
  }
}

}  // namespace
}  // namespace muster::collective::shm
