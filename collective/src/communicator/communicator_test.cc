#include "muster/collective/communicator.h"

#include <gtest/gtest.h>
#include <muster/collective/testing/options.h>
#include <muster/collective/testing/spawn_ranks.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <mutex>
#include <numeric>
#include <thread>
#include <tuple>

namespace muster::collective {
namespace {

using testing::spawn_ranks;

constexpr std::array kElementwiseOps = {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin,
                                        ReduceOp::kMax, ReduceOp::kProduct};

// The input of rank `rank` at element i: small, of either sign, never 0, different on each rank.
template <typename T>
T contribution(int rank, std::size_t i) {
  const int value = static_cast<int>((i * 7 + static_cast<std::size_t>(rank) * 3) % 5) + 1;
  return static_cast<T>(i % 2 == 0 ? value : -value);
}

template <typename T>
std::vector<T> contribution_of(int rank, std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = contribution<T>(rank, i);
  return values;
}

// The expected result of one element over all ranks, in plain C++. It is exact in every type, since
// all values and intermediate results are small whole numbers. An average is divided once, as in
// the library.
template <typename T>
T reference(ReduceOp op, int size, std::size_t i) {
  T result = contribution<T>(0, i);
  for (int rank = 1; rank < size; ++rank) {
    const T next = contribution<T>(rank, i);
    if (op == ReduceOp::kSum || op == ReduceOp::kAverage) result += next;
    if (op == ReduceOp::kMin) result = std::min(result, next);
    if (op == ReduceOp::kMax) result = std::max(result, next);
    if (op == ReduceOp::kProduct) result *= next;
  }
  return op == ReduceOp::kAverage ? result / static_cast<T>(size) : result;
}

template <typename T>
void expect_reference(Communicator& world, std::size_t count, ReduceOp op) {
  std::vector<T> values = contribution_of<T>(world.rank(), count);
  const Status done = world.all_reduce(values.data(), count, op);
  ASSERT_TRUE(done) << done.error().to_string();
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(values[i], reference<T>(op, world.size(), i))
        << to_string(op) << " of " << count << " " << to_string(kDataTypeOf<T>) << " at " << i
        << " on rank " << world.rank() << " of " << world.size();
  }
}

// The number of ranks, and the number of ranks on each host.
struct Shape {
  int size;
  int ranks_per_host;
};

class WorldsOf : public ::testing::TestWithParam<Shape> {
 public:
  static void spawn(const std::function<void(Communicator&)>& body) {
    spawn_ranks(GetParam().size, body, testing::kPatience,
                testing::Placement{GetParam().ranks_per_host});
  }
};

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (int size = 1; size <= 8; ++size) all.push_back({size, 16});  // shared memory
  for (int size = 2; size <= 7; ++size) all.push_back({size, 1});   // TCP
  for (const int size : {3, 4, 6}) all.push_back({size, 2});        // both
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shape, WorldsOf, ::testing::ValuesIn(shapes()), [](const auto& shape) {
  return std::to_string(shape.param.size) + "On" +
         std::to_string((shape.param.size - 1) / shape.param.ranks_per_host + 1);
});

TEST_P(WorldsOf, ReduceEveryTypeByEveryOperation) {
  spawn([](Communicator& world) {
    for (const ReduceOp op : kElementwiseOps) {
      for (const std::size_t count : {0, 1, 3, 8, 1009}) {
        expect_reference<float>(world, count, op);
        expect_reference<double>(world, count, op);
        expect_reference<std::int32_t>(world, count, op);
        expect_reference<std::int64_t>(world, count, op);
        expect_reference<std::int16_t>(world, count, op);
      }
    }
  });
}

// More data than sockets can buffer: a ring whose ranks only sent, or only received, would hang
// here.
TEST_P(WorldsOf, ReduceBuffersLargerThanSocketBuffers) {
  spawn([](Communicator& world) { expect_reference<float>(world, 2'000'003, ReduceOp::kSum); });
}

TEST_P(WorldsOf, GetTheSameBitsOnEveryRankAndInEveryRun) {
  // Values of very different sizes, whose sum depends on the order.
  constexpr std::size_t kCount = 10'007;
  std::vector<float> first;
  std::mutex mutex;
  for (int run = 0; run < 2; ++run) {
    spawn([&](Communicator& world) {
      std::vector<float> values(kCount);
      for (std::size_t i = 0; i < kCount; ++i) {
        const double angle = static_cast<double>(i) * (world.rank() + 1);
        values[i] = static_cast<float>(std::exp(10 * std::sin(angle)));
      }
      ASSERT_TRUE(world.all_reduce(values.data(), kCount, ReduceOp::kAverage));
      const std::lock_guard lock(mutex);
      if (first.empty()) first = values;
      // The same bits, not only equal numbers.
      // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
      EXPECT_EQ(std::memcmp(values.data(), first.data(), kCount * sizeof(float)), 0);
    });
  }
}

TEST_P(WorldsOf, BroadcastFromEveryRoot) {
  spawn([](Communicator& world) {
    for (int root = 0; root < world.size(); ++root) {
      for (const std::size_t count : {0, 1, 1009, 300'007}) {
        auto values = contribution_of<std::int32_t>(world.rank(), count);
        ASSERT_TRUE(world.broadcast(values.data(), count * sizeof(std::int32_t), root));
        EXPECT_EQ(values, contribution_of<std::int32_t>(root, count));
      }
    }
  });
}

TEST_P(WorldsOf, GatherPartsInTheOrderOfTheRanks) {
  spawn([](Communicator& world) {
    for (const std::size_t count : {0, 1, 100'003}) {
      const auto part = contribution_of<std::int64_t>(world.rank(), count);
      std::vector<std::int64_t> all(count * static_cast<std::size_t>(world.size()));
      ASSERT_TRUE(world.all_gather(part.data(), count * sizeof(std::int64_t), all.data()));
      for (int rank = 0; rank < world.size(); ++rank) {
        const auto expected = contribution_of<std::int64_t>(rank, count);
        const auto begin = all.begin() + rank * static_cast<std::ptrdiff_t>(count);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), begin)) << rank;
      }
    }
  });
}

TEST_P(WorldsOf, ReduceAListLikeSeparateCalls) {
  spawn([](Communicator& world) {
    std::vector<std::vector<std::int32_t>> tensors;
    std::vector<Tensor> list;
    for (const std::size_t count : {5, 0, 70'001, 1, 1, 300'000}) {
      tensors.push_back(contribution_of<std::int32_t>(world.rank(), count));
    }
    for (auto& tensor : tensors) list.push_back({tensor.data(), tensor.data(), tensor.size()});
    ASSERT_TRUE(world.all_reduce(list, DataType::kInt32, ReduceOp::kMax));
    for (const auto& tensor : tensors) {
      for (std::size_t i = 0; i < tensor.size(); ++i) {
        ASSERT_EQ(tensor[i], reference<std::int32_t>(ReduceOp::kMax, world.size(), i));
      }
    }
  });
}

TEST_P(WorldsOf, ScaleEveryInputOnceAndTheResultOnce) {
  spawn([](Communicator& world) {
    for (const std::size_t count : {1, 1000, 400'000}) {
      const auto in = contribution_of<float>(world.rank(), count);
      std::vector<float> out(count);
      const Reduction scaled(ReduceOp::kSum, 0.5, 4);
      ASSERT_TRUE(world.all_reduce(in.data(), out.data(), count, DataType::kFloat32, scaled));
      EXPECT_EQ(in, contribution_of<float>(world.rank(), count));
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(out[i], 2 * reference<float>(ReduceOp::kSum, world.size(), i));
      }
    }
  });
}

// The inputs are 256 and then ones: in bfloat16 256 + 1 is 256 again, but 256 + 1 + 1 is 258 if
// rounded once.
TEST_P(WorldsOf, RoundSixteenBitFloatsOnce) {
  spawn([](Communicator& world) {
    for (const std::size_t count : {1, 5'000, 400'001}) {
      std::vector<std::uint16_t> values(count, world.rank() == 0 ? 0x4380 : 0x3f80);
      ASSERT_TRUE(world.all_reduce(values.data(), count, DataType::kBFloat16, ReduceOp::kSum));
      const auto exact = std::bit_cast<std::uint32_t>(255.0F + static_cast<float>(world.size()));
      const std::uint32_t rounded = (exact + 0x7fff + ((exact >> 16) & 1)) >> 16;
      for (const std::uint16_t value : values) ASSERT_EQ(value, rounded);
    }
  });
}

// Rank 0 contributes 2 and rank 1 contributes 1, or each the next larger number; all others
// contribute 0. If it were rounded only once, the last digit of the result of two or more ranks
// would be one smaller.
TEST_P(WorldsOf, RoundSixteenBitFloatsAfterThePrescaleAndBeforeThePostscale) {
  struct Case {
    DataType type;
    Reduction reduction;
    std::uint16_t two, one, result, result_of_one_rank;
  };
  const Reduction before(ReduceOp::kSum, 1 + 0.75 / 1024);
  const Reduction brain_before(ReduceOp::kSum, 1 + 0.75 / 128);
  const Reduction after(ReduceOp::kSum, 1, 0.75);
  const Case cases[] = {{DataType::kFloat16, before, 0x4000, 0x3c00, 0x4202, 0x4001},
                        {DataType::kFloat16, after, 0x4001, 0x3c01, 0x4082, 0x3e02},
                        {DataType::kBFloat16, brain_before, 0x4000, 0x3f80, 0x4042, 0x4001},
                        {DataType::kBFloat16, after, 0x4001, 0x3f81, 0x4012, 0x3fc2}};
  spawn([&](Communicator& world) {
    for (const Case& each : cases) {
      const auto own = world.rank() == 0   ? each.two
                       : world.rank() == 1 ? each.one
                                           : std::uint16_t{0};
      const std::uint16_t result = world.size() == 1 ? each.result_of_one_rank : each.result;
      for (const std::size_t count : {1, 5'000, 400'001}) {
        std::vector<std::uint16_t> values(count, own);
        ASSERT_TRUE(world.all_reduce(values.data(), count, each.type, each.reduction));
        for (const std::uint16_t value : values) ASSERT_EQ(value, result);
      }
      const std::vector<std::uint64_t> counts(static_cast<std::size_t>(world.size()), 1'000);
      const std::vector<std::uint16_t> parts(1'000 * counts.size(), own);
      std::vector<std::uint16_t> part(1'000);
      ASSERT_TRUE(
          world.reduce_scatter(parts.data(), part.data(), counts, each.type, each.reduction));
      for (const std::uint16_t value : part) ASSERT_EQ(value, result);
    }
  });
}

TEST_P(WorldsOf, ScatterReducedPartsOfAnyLength) {
  spawn([](Communicator& world) {
    for (const std::size_t unit : {0, 1, 997, 90'001}) {
      std::vector<std::uint64_t> counts;
      for (int rank = 0; rank < world.size(); ++rank) {
        counts.push_back(unit * static_cast<std::uint64_t>(rank % 3));
      }
      const auto before = std::accumulate(counts.begin(), counts.begin() + world.rank(), 0UL);
      const auto all = std::accumulate(counts.begin(), counts.end(), 0UL);
      const auto in = contribution_of<double>(world.rank(), all);
      std::vector<double> out(counts[static_cast<std::size_t>(world.rank())]);
      const Status done =
          world.reduce_scatter(in.data(), out.data(), counts, DataType::kFloat64, ReduceOp::kSum);
      ASSERT_TRUE(done) << done.error().to_string();
      for (std::size_t i = 0; i < out.size(); ++i) {
        ASSERT_EQ(out[i], reference<double>(ReduceOp::kSum, world.size(), before + i));
      }
    }
  });
}

TEST_P(WorldsOf, GatherPartsOfUnequalLengths) {
  spawn([](Communicator& world) {
    for (const std::size_t unit : {0, 1, 50'003}) {
      std::vector<std::uint64_t> lengths;
      std::vector<std::int8_t> expected;
      for (int rank = 0; rank < world.size(); ++rank) {
        const auto part =
            contribution_of<std::int8_t>(rank, unit * static_cast<std::size_t>((rank + 2) % 3));
        lengths.push_back(part.size());
        expected.insert(expected.end(), part.begin(), part.end());
      }
      const auto part = contribution_of<std::int8_t>(
          world.rank(), lengths[static_cast<std::size_t>(world.rank())]);
      std::vector<std::int8_t> all(expected.size());
      ASSERT_TRUE(world.all_gather(part.data(), all.data(), lengths));
      EXPECT_EQ(all, expected);
    }
  });
}

TEST_P(WorldsOf, ReduceToTheRootAlone) {
  spawn([](Communicator& world) {
    for (const std::size_t count : {0, 3, 200'003}) {
      for (int root = 0; root < world.size(); ++root) {
        const auto in = contribution_of<float>(world.rank(), count);
        std::vector<float> out(world.rank() == root ? count : 0);
        ASSERT_TRUE(
            world.reduce(in.data(), out.data(), count, DataType::kFloat32, ReduceOp::kSum, root));
        for (std::size_t i = 0; i < out.size(); ++i) {
          ASSERT_EQ(out[i], reference<float>(ReduceOp::kSum, world.size(), i));
        }
      }
    }
  });
}

TEST_P(WorldsOf, ExchangeBetweenAllPairs) {
  spawn([](Communicator& world) {
    for (const std::size_t unit : {0, 1, 33'333}) {
      std::vector<std::uint64_t> sent;
      std::vector<std::uint64_t> received;
      std::vector<std::int8_t> in;
      std::vector<std::int8_t> expected;
      for (int other = 0; other < world.size(); ++other) {
        const auto append = [&](std::vector<std::int8_t>& to, int from, int by) {
          const auto part = contribution_of<std::int8_t>(
              from * 16 + by, unit * static_cast<std::size_t>((from + 2 * by) % 4));
          to.insert(to.end(), part.begin(), part.end());
          return part.size();
        };
        sent.push_back(append(in, world.rank(), other));
        received.push_back(append(expected, other, world.rank()));
      }
      std::vector<std::int8_t> out(expected.size());
      const Status done = world.all_to_all(in.data(), sent, out.data(), received);
      ASSERT_TRUE(done) << done.error().to_string();
      EXPECT_EQ(out, expected);
    }
  });
}

TEST_P(WorldsOf, PassMessagesRound) {
  spawn([](Communicator& world) {
    if (world.size() == 1) return;
    const int next = (world.rank() + 1) % world.size();
    const int previous = (world.rank() + world.size() - 1) % world.size();
    for (const std::size_t count : {0, 1, 500'000}) {
      const auto out = contribution_of<std::int32_t>(world.rank(), count);
      std::vector<std::int32_t> in(count);
      const std::uint64_t bytes = count * sizeof(std::int32_t);
      if (world.rank() == 0) {
        ASSERT_TRUE(world.send(out.data(), bytes, next));
      }
      ASSERT_TRUE(world.receive(in.data(), bytes, previous));
      if (world.rank() != 0) {
        ASSERT_TRUE(world.send(out.data(), bytes, next));
      }
      EXPECT_EQ(in, contribution_of<std::int32_t>(previous, count));
    }
  });
}

TEST_P(WorldsOf, RefuseMessagesOfARankToItself) {
  spawn([](Communicator& world) {
    if (world.size() == 1) return;
    int value = 0;
    const std::string self = "rank " + std::to_string(world.rank());
    const Status sent = world.send(&value, sizeof value, world.rank());
    ASSERT_FALSE(sent);
    EXPECT_EQ(sent.error().code, ErrorCode::kBadArgument);
    EXPECT_EQ(
        sent.error().message,
        "the receiver, " + self + ", is the calling rank itself; a message requires two ranks");
    const Status received = world.receive(&value, sizeof value, world.rank());
    ASSERT_FALSE(received);
    EXPECT_EQ(received.error().message,
              "the sender, " + self + ", is the calling rank itself; a message requires two ranks");
    EXPECT_TRUE(world.barrier());
  });
}

// The adasum of parallel gradients is their mean, of orthogonal gradients their sum.
TEST_P(WorldsOf, CombineGradientsByTheirDirections) {
  spawn([](Communicator& world) {
    std::vector<double> same(1000, 3);
    ASSERT_TRUE(world.all_reduce(same.data(), same.size(), ReduceOp::kAdasum));
    for (const double value : same) ASSERT_NEAR(value, 3, 1e-12);
    std::vector<float> apart(static_cast<std::size_t>(world.size()));
    apart[static_cast<std::size_t>(world.rank())] = 5;
    ASSERT_TRUE(world.all_reduce(apart.data(), apart.size(), ReduceOp::kAdasum));
    for (const float value : apart) ASSERT_NEAR(value, 5, 1e-5);
  });
}

TEST_P(WorldsOf, HaveGroupsThatDoNotNeedOtherRanks) {
  spawn([](Communicator& world) {
    std::vector<int> members;
    for (int rank = world.size() - 1; rank >= 0; --rank) {
      if (rank % 2 == world.rank() % 2) members.push_back(rank);
    }
    Result<Communicator> group = world.group(members);
    ASSERT_TRUE(group) << group.error().to_string();
    EXPECT_EQ(group->size(), static_cast<int>(members.size()));
    EXPECT_EQ(members[static_cast<std::size_t>(group->rank())], world.rank());
    std::vector<int> ranks(10'000, world.rank());
    ASSERT_TRUE(group->all_reduce(ranks.data(), ranks.size(), ReduceOp::kSum));
    const int sum = std::accumulate(members.begin(), members.end(), 0);
    EXPECT_TRUE(std::ranges::all_of(ranks, [&](int value) { return value == sum; }));
    EXPECT_EQ(world.group(std::vector<int>{world.rank(), world.rank()}).error().code,
              ErrorCode::kBadArgument);
    ASSERT_TRUE(world.barrier());
  });
}

TEST_P(WorldsOf, LeaveABarrierOnlyWhenAllHaveEntered) {
  std::atomic<int> entered = 0;
  spawn([&](Communicator& world) {
    for (int round = 1; round <= 20; ++round) {
      ++entered;
      ASSERT_TRUE(world.barrier());
      EXPECT_GE(entered, round * world.size());
    }
  });
}

// More than fill the memory in which the ranks of a host announce what they send.
TEST(Communicator, ExchangesNothingAnyNumberOfTimes) {
  spawn_ranks(2, [](Communicator& world) {
    const std::vector<std::uint64_t> none(2, 0);
    for (int i = 0; i < 70'000; ++i) {
      const Status done = world.all_to_all(nullptr, none, nullptr, none);
      ASSERT_TRUE(done) << "call " << i << ": " << done.error().to_string();
    }
  });
}

TEST(Communicator, CanBeMovedToItself) {
  spawn_ranks(2, [](Communicator& world) {
    Communicator& same = world;
    world = std::move(same);
    EXPECT_TRUE(world.barrier());
  });
}

TEST(Communicator, ReportsItsRankAndSize) {
  std::atomic<int> ranks = 0;
  spawn_ranks(4, [&](Communicator& world) {
    EXPECT_EQ(world.size(), 4);
    EXPECT_EQ(world.host(), "host-" + std::to_string(world.rank()));
    ranks += 1 << world.rank();
  });
  EXPECT_EQ(ranks, 0b1111);
}

TEST(Communicator, RejectsInvalidArguments) {
  auto world = Communicator::connect({.rank = 0, .size = 1});
  ASSERT_TRUE(world);
  int x = 0;
  EXPECT_EQ(world->all_reduce(static_cast<float*>(nullptr), 1, ReduceOp::kSum).error().code,
            ErrorCode::kBadArgument);
  EXPECT_EQ(world->broadcast(&x, sizeof x, 1).error().message,
            "the root of a broadcast, rank 1, is not in a world of 1");
  EXPECT_FALSE(world->broadcast(&x, sizeof x, -1));
  EXPECT_FALSE(world->all_gather(&x, sizeof x, nullptr));
  const auto message = [](const Status& status) { return status.error().message; };
  std::array<float, 8> values = {};
  EXPECT_EQ(message(world->all_reduce(values.data(), values.data() + 1, 4, DataType::kFloat32,
                                      ReduceOp::kSum)),
            "the input and the output overlap partly; they must be the same buffer or not overlap");
  EXPECT_EQ(message(world->all_reduce(&x, 1, DataType{77}, ReduceOp::kSum)),
            "unknown data type 77");
  EXPECT_EQ(message(world->all_reduce(&x, 1, ReduceOp{99})), "unknown operation 99");
  EXPECT_EQ(message(world->all_reduce(&x, 1, ReduceOp::kAdasum)),
            "adasum requires floats, not int32");
  bool flag = true;
  EXPECT_EQ(message(world->all_reduce(&flag, 1, ReduceOp::kAverage)),
            "bools have no average and no scale");
  EXPECT_EQ(message(world->all_reduce(&x, ~0ULL, ReduceOp::kSum)),
            "the length of the buffer does not fit in 63 bits");
  EXPECT_EQ(message(world->all_gather(&x, &x, std::vector<std::uint64_t>{1, 2})),
            "there are 2 lengths for a world of 1");
  EXPECT_EQ(message(world->send(&x, sizeof x, 3)), "the receiver, rank 3, is not in a world of 1");
}

TEST(Communicator, ExplainsTheAlgorithmThatItChooses) {
  spawn_ranks(2, [](Communicator& world) {
    const std::string line = world.explain(DataType::kFloat32, 4);
    EXPECT_TRUE(line.starts_with("shared memory, in the entries of the call")) << line;
  });
}

TEST(Communicator, ExplainsWhyTheRanksOfAHostShareNoMemory) {
  std::vector<Options> options = testing::world_of(2);
  // More than any address space.
  for (Options& one : options) one.arena_bytes = std::uint64_t{1} << 60;
  testing::on_threads(2, [&](int rank) {
    const Result<Communicator> world =
        Communicator::connect(options[static_cast<std::size_t>(rank)]);
    ASSERT_TRUE(world) << world.error().to_string();
    const std::string line = world->explain(DataType::kFloat32, 4);
    EXPECT_TRUE(line.starts_with("tcp, ")) << line;
    EXPECT_NE(line.find("; rank 0 on host host-0 cannot share memory: cannot "), std::string::npos)
        << line;
  });
}

TEST(Communicator, AllocatesMemoryInWhichTensorsAreReducedInPlace) {
  spawn_ranks(3, [](Communicator& world) {
    constexpr std::size_t kCount = 1'000'000;
    auto* const values = static_cast<float*>(world.allocate_shared(kCount * sizeof(float)));
    ASSERT_NE(values, nullptr);
    for (int round = 1; round <= 3; ++round) {
      std::fill_n(values, kCount, static_cast<float>(world.rank() + round));
      ASSERT_TRUE(world.all_reduce(values, kCount, ReduceOp::kSum));
      const auto sum = static_cast<float>(3 + 3 * round);
      EXPECT_TRUE(std::all_of(values, values + kCount, [&](float v) { return v == sum; }));
    }
    world.free_shared(values);
  });
}

TEST(Communicator, WaitsForARankThatIsLate) {
  std::vector<Options> options = testing::world_of(3);
  for (Options& each : options) each.silence.reset();
  std::atomic<int> others = 0;
  testing::on_threads(3, [&](int rank) {
    Result<Communicator> world = Communicator::connect(options[static_cast<std::size_t>(rank)]);
    ASSERT_TRUE(world) << world.error().to_string();
    // The delay is the subject of this test: it exceeds the silence limit by far, and no event ends
    // it.
    if (rank == 2) {
      while (others < 2) others.wait(others);
      std::this_thread::sleep_for(std::chrono::seconds(5));
    } else {
      ++others;
      others.notify_all();
    }
    int one = 1;
    const Status reduced = world->all_reduce(&one, 1, ReduceOp::kSum);
    ASSERT_TRUE(reduced) << reduced.error().to_string();
    EXPECT_EQ(one, 3);
  });
}

TEST(Communicator, SharesNoStateWithAnother) {
  // Two worlds of the same ranks, used from two threads of each at the same time.
  const std::vector<Options> first = testing::world_of(3);
  const std::vector<Options> second = testing::world_of(3);
  testing::on_threads(6, [&](int thread) {
    const auto rank = static_cast<std::size_t>(thread % 3);
    Result<Communicator> world = Communicator::connect(thread < 3 ? first[rank] : second[rank]);
    ASSERT_TRUE(world) << world.error().to_string();
    for (int round = 0; round < 50; ++round) {
      std::vector<int> values(static_cast<std::size_t>(1 + round * 999), thread < 3 ? 1 : 2);
      ASSERT_TRUE(world->all_reduce(values.data(), values.size(), ReduceOp::kSum));
      EXPECT_TRUE(std::ranges::all_of(values, [&](int v) { return v == (thread < 3 ? 3 : 6); }));
    }
  });
}

TEST(Communicator, RejectsOptionsWithoutARendezvous) {
  EXPECT_FALSE(Communicator::connect({}));
  EXPECT_FALSE(Communicator::connect({.rank = 2, .size = 2}));
  EXPECT_EQ(Communicator::connect({.rank = 0, .size = 2}).error().message,
            "the options have no rendezvous");
}

}  // namespace
}  // namespace muster::collective
