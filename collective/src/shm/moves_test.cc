#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "shm/shm_world.h"

namespace muster::collective::shm {
namespace {

constexpr std::uint64_t kLengths[] = {0, 1, 40, 41, 5'000, 262'144, 262'145, 3'000'001};

std::byte byte_of(int rank, std::uint64_t i) {
  return static_cast<std::byte>((i * 13 + static_cast<std::uint64_t>(rank) * 31) % 251);
}

std::vector<std::byte> bytes_of(int rank, std::uint64_t length) {
  std::vector<std::byte> bytes(length);
  for (std::uint64_t i = 0; i < length; ++i) bytes[i] = byte_of(rank, i);
  return bytes;
}

class ShmMoves : public ::testing::TestWithParam<int> {};

TEST_P(ShmMoves, BroadcastsFromEveryRoot) {
  const int size = GetParam();
  on_host(size, [size](ShmBackend& host, int rank) {
    std::uint64_t sequence = 0;
    for (const std::uint64_t length : kLengths) {
      for (int root = 0; root < size; ++root) {
        std::vector<std::byte> data = bytes_of(rank, length);
        const Call call{
            .kind = CallKind::kBroadcast, .root = root, .count = length, .sequence = ++sequence};
        ASSERT_TRUE(host.broadcast(call, data.data()));
        ASSERT_EQ(data, bytes_of(root, length));
      }
    }
  });
}

TEST_P(ShmMoves, GathersPartsOfUnequalLengths) {
  const int size = GetParam();
  on_host(size, [size](ShmBackend& host, int rank) {
    std::uint64_t sequence = 0;
    for (const std::uint64_t length : kLengths) {
      std::vector<std::uint64_t> lengths;
      std::vector<std::byte> expected;
      for (int other = 0; other < size; ++other) {
        lengths.push_back(length / static_cast<std::uint64_t>(other + 1));
        const std::vector<std::byte> part = bytes_of(other, lengths.back());
        expected.insert(expected.end(), part.begin(), part.end());
      }
      const std::vector<std::byte> part = bytes_of(rank, lengths[static_cast<std::size_t>(rank)]);
      std::vector<std::byte> all(expected.size());
      const Call call{.kind = CallKind::kAllGather, .count = all.size(), .sequence = ++sequence};
      ASSERT_TRUE(host.all_gather(call, part.data(), all.data(), lengths));
      ASSERT_EQ(all, expected);
    }
  });
}

TEST_P(ShmMoves, ScattersReducedPartsOfUnequalLengths) {
  const int size = GetParam();
  on_host(size, [size](ShmBackend& host, int rank) {
    std::uint64_t sequence = 0;
    for (const std::uint64_t length : kLengths) {
      std::vector<std::uint64_t> counts;
      std::uint64_t all = 0;
      std::uint64_t before = 0;
      for (int other = 0; other < size; ++other) {
        counts.push_back(length / static_cast<std::uint64_t>(2 * (size - other)));
        if (other < rank) before += counts.back();
        all += counts.back();
      }
      std::vector<std::int32_t> in(all);
      for (std::uint64_t i = 0; i < all; ++i) {
        in[i] = static_cast<std::int32_t>(i) * (rank + 1);
      }
      std::vector<std::int32_t> out(counts[static_cast<std::size_t>(rank)]);
      const Call call{.kind = CallKind::kReduceScatter,
                      .type = DataType::kInt32,
                      .reduction = ReduceOp::kSum,
                      .count = all,
                      .sequence = ++sequence};
      ASSERT_TRUE(host.reduce_scatter(call, reinterpret_cast<const std::byte*>(in.data()),
                                      reinterpret_cast<std::byte*>(out.data()), counts));
      const std::int32_t factor = size * (size + 1) / 2;
      for (std::uint64_t i = 0; i < out.size(); ++i) {
        ASSERT_EQ(out[i], static_cast<std::int32_t>(before + i) * factor) << i;
      }
    }
  });
}

TEST_P(ShmMoves, ReducesToEveryRoot) {
  const int size = GetParam();
  on_host(size, [size](ShmBackend& host, int rank) {
    std::uint64_t sequence = 0;
    for (const std::uint64_t count : kLengths) {
      for (int root = 0; root < size; ++root) {
        const std::vector<std::int64_t> in(count, rank + 1);
        std::vector<std::int64_t> out(rank == root ? count : 0);
        const Call call{.kind = CallKind::kReduce,
                        .type = DataType::kInt64,
                        .reduction = ReduceOp::kMax,
                        .root = root,
                        .count = count,
                        .sequence = ++sequence};
        ASSERT_TRUE(host.reduce(call, reinterpret_cast<const std::byte*>(in.data()),
                                reinterpret_cast<std::byte*>(out.data())));
        for (const std::int64_t value : out) ASSERT_EQ(value, size);
      }
      if (count > 300'000) break;
    }
  });
}

// Rank r sends (r + 1) * (s + 2) times a base length to rank s.
TEST_P(ShmMoves, ExchangesUnequalLengthsBetweenAllPairs) {
  const int size = GetParam();
  on_host(size, [size](ShmBackend& host, int rank) {
    const auto length = [](std::uint64_t unit, int from, int to) {
      return unit * static_cast<std::uint64_t>((from + 1) * (to + 2)) % (4 * unit + 1);
    };
    std::uint64_t sequence = 0;
    for (const std::uint64_t unit : {0, 1, 100, 70'001}) {
      std::vector<std::uint64_t> sent;
      std::vector<std::uint64_t> received;
      std::vector<std::byte> in;
      std::vector<std::byte> expected;
      for (int other = 0; other < size; ++other) {
        sent.push_back(length(unit, rank, other));
        received.push_back(length(unit, other, rank));
        const std::vector<std::byte> mine = bytes_of(rank * size + other, sent.back());
        const std::vector<std::byte> theirs = bytes_of(other * size + rank, received.back());
        in.insert(in.end(), mine.begin(), mine.end());
        expected.insert(expected.end(), theirs.begin(), theirs.end());
      }
      std::vector<std::byte> out(expected.size());
      const Call call{.kind = CallKind::kAllToAll, .sequence = ++sequence};
      ASSERT_TRUE(host.all_to_all(call, in.data(), sent, out.data(), received));
      ASSERT_EQ(out, expected);
    }
  });
}

TEST_P(ShmMoves, SendsMessagesOfAnyLengthAroundARing) {
  const int size = GetParam();
  on_host(size, [size](ShmBackend& host, int rank) {
    for (const std::uint64_t length : kLengths) {
      const int next = (rank + 1) % size;
      const int previous = (rank + size - 1) % size;
      const std::vector<std::byte> out = bytes_of(rank, length);
      std::vector<std::byte> in(length);
      // Rank 0 sends first, the other ranks pass the message on.
      if (rank == 0) {
        ASSERT_TRUE(host.send(out.data(), length, next));
        ASSERT_TRUE(host.receive(in.data(), length, previous));
      } else {
        ASSERT_TRUE(host.receive(in.data(), length, previous));
        ASSERT_TRUE(host.send(out.data(), length, next));
      }
      ASSERT_EQ(in, bytes_of(previous, length));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, ShmMoves, ::testing::Values(2, 3, 4, 7));

std::uint64_t occupied(const Descriptor& file) {
  struct stat status = {};
  ::fstat(file.get(), &status);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

TEST(ShmChannels, AreReservedBeforeTheirFirstMessage) {
  const Layout layout = layout_of(2, 8 << 20);
  Result<Descriptor> file = SharedMemory::create(layout.total);
  ASSERT_TRUE(file) << file.error().to_string();
  const Descriptor same(::dup(file->get()));
  Result<SharedMemory> memory = SharedMemory::map(*std::move(file));
  ASSERT_TRUE(memory) << memory.error().to_string();
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        Result<std::unique_ptr<ShmBackend>> backend = ShmBackend::create({.self = rank,
                                                                          .ranks = {0, 1},
                                                                          .names = {"here", "here"},
                                                                          .memory = memory->base(),
                                                                          .layout = layout,
                                                                          .file = &*memory});
        ASSERT_TRUE(backend) << backend.error().to_string();
        std::byte letter{1};
        EXPECT_TRUE(rank == 0 ? (*backend)->send(&letter, 1, 1)
                              : (*backend)->receive(&letter, 1, 0));
      });
    }
  }
  EXPECT_GE(occupied(same), kChannelBytes);
}

}  // namespace
}  // namespace muster::collective::shm
