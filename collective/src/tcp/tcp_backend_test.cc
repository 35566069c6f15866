#include "tcp/tcp_backend.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <random>

#include "tcp/test_values.h"
#include "tcp/test_world.h"

namespace muster::collective::tcp {
namespace {

using testing::expected_value;
using testing::input_of;
using testing::load_value;
using testing::make_worlds;
using testing::on_all;

constexpr std::uint64_t kChunkOfFloats = kChunkBytes / sizeof(float);

// Makes the calls of one rank, with their numbers.
class Caller {
 public:
  explicit Caller(World& world) : world_(world), backend_(world) {}

  Call call(CallKind kind, std::uint64_t count) {
    const Call call = {.kind = kind, .count = count, .sequence = ++sequence_};
    if (world_.monitor) world_.monitor->entered(call.sequence);
    return call;
  }

  Call reduction(CallKind kind, DataType type, const Reduction& reduction, std::uint64_t count) {
    Call made = call(kind, count);
    made.type = type;
    made.reduction = reduction;
    return made;
  }

  TcpBackend& backend() { return backend_; }
  int rank() const { return world_.rank; }
  int size() const { return world_.size; }

 private:
  World& world_;
  TcpBackend backend_;
  std::uint64_t sequence_ = 0;
};

void expect_done(const Status& status) {
  EXPECT_TRUE(status) << status.error().to_string();
}

void expect_reduced(DataType type, const Reduction& reduction, int ranks, std::uint64_t first,
                    std::span<const std::byte> out) {
  const std::size_t element = size_of(type);
  int wrong = 0;
  for (std::uint64_t i = 0; i < out.size() / element && wrong < 3; ++i) {
    double expected = expected_value(type, reduction, ranks, first + i);
    if (!is_float(type)) expected = std::trunc(expected);
    const double tolerance = element == 2 && is_float(type) ? 0.02 * std::abs(expected) : 1e-5;
    const double found = load_value(type, out.data() + i * element);
    if (std::abs(found - expected) <= tolerance) continue;
    ++wrong;
    ADD_FAILURE() << to_string(type) << " " << to_string(reduction.op) << " of " << ranks
                  << " ranks: element " << first + i << " is " << found << ", not " << expected;
  }
}

void expect_all_reduce(Caller& caller, DataType type, const Reduction& reduction,
                       std::uint64_t count, bool in_place) {
  std::vector<std::byte> in = input_of(type, caller.rank(), count);
  std::vector<std::byte> out(in.size());
  std::byte* const target = in_place ? in.data() : out.data();
  const Piece piece = {in.data(), target, count};
  expect_done(caller.backend().all_reduce(
      caller.reduction(CallKind::kAllReduce, type, reduction, count), {&piece, 1}));
  expect_reduced(type, reduction, caller.size(), 0, {target, in.size()});
}

class OfRanks : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Tcp, OfRanks, ::testing::Range(1, 10));

TEST_P(OfRanks, EveryAlgorithmReducesEveryLength) {
  for (const char* algorithm : {"auto", "direct", "ring", "rabenseifner", "doubling", "exchange"}) {
    SCOPED_TRACE(algorithm);
    on_all(make_worlds({.size = GetParam(), .algorithm = algorithm}), [](World& world) {
      Caller caller(world);
      const Reduction sum(ReduceOp::kSum);
      for (const std::uint64_t count :
           {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{17},
            std::uint64_t{1009}, kChunkOfFloats, kChunkOfFloats + 1, 3 * kChunkOfFloats - 1,
            std::uint64_t{300'007}}) {
        expect_all_reduce(caller, DataType::kFloat32, sum, count, false);
        expect_all_reduce(caller, DataType::kFloat32, sum, count, true);
      }
    });
  }
}

TEST_P(OfRanks, EveryTypeAndOperationIsReduced) {
  on_all(make_worlds({.size = GetParam()}), [](World& world) {
    Caller caller(world);
    for (int number = 1; number <= 13; ++number) {
      const auto type = static_cast<DataType>(number);
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax,
                                ReduceOp::kProduct}) {
        if (type == DataType::kBool && op == ReduceOp::kAverage) continue;
        // Products of nine values do not fit into the small types.
        if (op == ReduceOp::kProduct && !is_float(type) && caller.size() > 3) continue;
        if (op == ReduceOp::kProduct && type == DataType::kFloat16 && caller.size() > 7) continue;
        expect_all_reduce(caller, type, op, 1009, true);
        expect_all_reduce(caller, type, op, 40'003, false);
      }
    }
  });
}

TEST_P(OfRanks, ScalesAreAppliedOnceWhateverTheAlgorithm) {
  for (const char* algorithm : {"auto", "direct", "ring", "rabenseifner", "doubling"}) {
    SCOPED_TRACE(algorithm);
    on_all(make_worlds({.size = GetParam(), .algorithm = algorithm}), [](World& world) {
      Caller caller(world);
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMax}) {
        for (const DataType type : {DataType::kFloat32, DataType::kBFloat16, DataType::kInt32}) {
          expect_all_reduce(caller, type, {op, 2.0, 4.0}, 70'001, true);
        }
      }
    });
  }
}

TEST_P(OfRanks, PartsOfAnyLengthAreScatteredAndGathered) {
  on_all(make_worlds({.size = GetParam()}), [](World& world) {
    Caller caller(world);
    for (const std::uint64_t unit : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{20'011}}) {
      std::vector<std::uint64_t> counts;
      for (int r = 0; r < world.size; ++r)
        counts.push_back(unit * static_cast<std::uint64_t>(r % 3));
      const std::uint64_t total = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
      const auto rank = static_cast<std::size_t>(world.rank);
      const std::uint64_t before =
          std::accumulate(counts.begin(), counts.begin() + world.rank, std::uint64_t{0});
      const std::vector<std::byte> in = input_of(DataType::kFloat16, world.rank, total);
      std::vector<std::byte> part(counts[rank] * 2);
      expect_done(caller.backend().reduce_scatter(
          caller.reduction(CallKind::kReduceScatter, DataType::kFloat16, ReduceOp::kSum, total),
          in.data(), part.data(), counts));
      expect_reduced(DataType::kFloat16, ReduceOp::kSum, world.size, before, part);

      std::vector<std::uint64_t> bytes = counts;
      for (std::uint64_t& length : bytes) length *= 2;
      std::vector<std::byte> all(total * 2);
      expect_done(caller.backend().all_gather(caller.call(CallKind::kAllGather, total * 2),
                                              part.data(), all.data(), bytes));
      expect_reduced(DataType::kFloat16, ReduceOp::kSum, world.size, 0, all);
    }
  });
}

TEST_P(OfRanks, EveryRootGetsTheSumAndBroadcastsIt) {
  on_all(make_worlds({.size = GetParam()}), [](World& world) {
    Caller caller(world);
    for (int root = 0; root < world.size; ++root) {
      for (const std::uint64_t count :
           {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{100'003}}) {
        std::vector<std::byte> data = input_of(DataType::kFloat32, world.rank, count);
        Call reduce =
            caller.reduction(CallKind::kReduce, DataType::kFloat32, ReduceOp::kSum, count);
        reduce.root = root;
        std::byte* const out = world.rank == root ? data.data() : nullptr;
        expect_done(caller.backend().reduce(reduce, data.data(), out));
        Call broadcast = caller.call(CallKind::kBroadcast, data.size());
        broadcast.root = root;
        expect_done(caller.backend().broadcast(broadcast, data.data()));
        expect_reduced(DataType::kFloat32, ReduceOp::kSum, world.size, 0, data);
      }
    }
  });
}

// The bytes that `from` sends to `to`: their number and values depend on both ranks.
std::uint64_t length_between(int from, int to, std::uint64_t unit) {
  return unit * static_cast<std::uint64_t>((from * 5 + to * 3) % 4);
}
std::byte byte_between(int from, int to) {
  return static_cast<std::byte>(from * 16 + to);
}

TEST_P(OfRanks, EveryPairExchangesItsOwnLength) {
  on_all(make_worlds({.size = GetParam()}), [](World& world) {
    Caller caller(world);
    for (const std::uint64_t unit : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{70'001}}) {
      std::vector<std::uint64_t> sent;
      std::vector<std::uint64_t> received;
      std::vector<std::byte> in;
      std::vector<std::byte> expected;
      for (int other = 0; other < world.size; ++other) {
        sent.push_back(length_between(world.rank, other, unit));
        received.push_back(length_between(other, world.rank, unit));
        in.insert(in.end(), sent.back(), byte_between(world.rank, other));
        expected.insert(expected.end(), received.back(), byte_between(other, world.rank));
      }
      std::vector<std::byte> out(expected.size());
      expect_done(caller.backend().all_to_all(caller.call(CallKind::kAllToAll, 0), in.data(), sent,
                                              out.data(), received));
      EXPECT_EQ(out, expected);
    }
  });
}

TEST_P(OfRanks, NoRankLeavesABarrierBeforeAllHaveEntered) {
  std::atomic<int> entered = 0;
  on_all(make_worlds({.size = GetParam()}), [&entered](World& world) {
    Caller caller(world);
    for (int round = 1; round <= 20; ++round) {
      ++entered;
      expect_done(caller.backend().barrier(caller.call(CallKind::kBarrier, 0)));
      EXPECT_GE(entered.load(), round * world.size);
    }
  });
}

TEST_P(OfRanks, MessagesTravelAroundTheRing) {
  on_all(make_worlds({.size = GetParam()}), [](World& world) {
    if (world.size == 1) return;
    Caller caller(world);
    const int right = (world.rank + 1) % world.size;
    const int left = (world.rank + world.size - 1) % world.size;
    for (const std::uint64_t bytes :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1'000'003}}) {
      const std::vector<std::byte> mine(bytes, static_cast<std::byte>(world.rank));
      std::vector<std::byte> theirs(bytes);
      if (world.rank == 0) expect_done(caller.backend().send(mine.data(), bytes, right));
      expect_done(caller.backend().receive(theirs.data(), bytes, left));
      if (world.rank != 0) expect_done(caller.backend().send(mine.data(), bytes, right));
      EXPECT_EQ(theirs, std::vector<std::byte>(bytes, static_cast<std::byte>(left)));
    }
  });
}

// Values whose sum depends on the order in which they are added.
std::vector<float> rough_input(int rank, std::size_t count) {
  std::minstd_rand random(static_cast<unsigned>(rank) + 1);
  std::uniform_real_distribution<float> values(-1e6F, 1e6F);
  std::vector<float> input(count);
  for (float& value : input) value = values(random);
  return input;
}

TEST(Tcp, AllRanksHaveTheSameBitsInEveryRun) {
  for (const char* algorithm : {"direct", "ring", "rabenseifner", "doubling", "exchange"}) {
    std::vector<std::vector<float>> results;
    std::mutex mutex;
    for (int run = 0; run < 2; ++run) {
      on_all(make_worlds({.size = 5, .algorithm = algorithm}), [&](World& world) {
        Caller caller(world);
        std::vector<float> data = rough_input(world.rank, 200'003);
        auto* const bytes = reinterpret_cast<std::byte*>(data.data());
        const Piece piece = {bytes, bytes, data.size()};
        expect_done(
            caller.backend().all_reduce(caller.reduction(CallKind::kAllReduce, DataType::kFloat32,
                                                         ReduceOp::kAverage, data.size()),
                                        {&piece, 1}));
        const std::lock_guard lock(mutex);
        results.push_back(std::move(data));
      });
    }
    for (const std::vector<float>& result : results) EXPECT_EQ(result, results[0]) << algorithm;
  }
}

TEST(Tcp, TheNumberOfStreamsDoesNotMatter) {
  for (const int streams : {1, 3, 16}) {
    on_all(make_worlds({.size = 3, .streams = streams}), [](World& world) {
      Caller caller(world);
      for (const std::uint64_t count : {std::uint64_t{7}, std::uint64_t{1'500'007}}) {
        expect_all_reduce(caller, DataType::kFloat32, ReduceOp::kSum, count, true);
        expect_all_reduce(caller, DataType::kBFloat16, ReduceOp::kSum, count, true);
      }
    });
  }
}

TEST(Tcp, SomeRanksOfAWorldReduceAmongThemselves) {
  on_all(make_worlds({.size = 5}), [](World& world) {
    const bool is_even = world.rank % 2 == 0;
    const std::vector<int> members = is_even ? std::vector<int>{4, 0, 2} : std::vector<int>{1, 3};
    TcpBackend backend(world, members, nullptr);
    std::vector<float> data(100'003, static_cast<float>(world.rank));
    auto* const bytes = reinterpret_cast<std::byte*>(data.data());
    const Piece piece = {bytes, bytes, data.size()};
    expect_done(backend.all_reduce({.kind = CallKind::kAllReduce,
                                    .type = DataType::kFloat32,
                                    .reduction = ReduceOp::kSum,
                                    .count = data.size(),
                                    .sequence = 1},
                                   {&piece, 1}));
    EXPECT_EQ(data, std::vector<float>(data.size(), is_even ? 6.0F : 4.0F));
    Call broadcast = {.kind = CallKind::kBroadcast, .count = 4, .sequence = 2};
    data[0] = static_cast<float>(world.rank);
    expect_done(backend.broadcast(broadcast, bytes));
    EXPECT_EQ(data[0], is_even ? 4.0F : 1.0F);
  });
}

TEST(Tcp, GivesTheSameExplanationOnEveryRank) {
  std::vector<std::string> sentences;
  std::mutex mutex;
  on_all(make_worlds({.size = 4}), [&](World& world) {
    const TcpBackend backend(world);
    const std::lock_guard lock(mutex);
    sentences.push_back(backend.explain(DataType::kFloat32, 1 << 20));
  });
  EXPECT_EQ(sentences[0].substr(0, 5), "tcp, ");
  EXPECT_NE(sentences[0].find("2 streams (predicted "), std::string::npos) << sentences[0];
  for (const std::string& sentence : sentences) EXPECT_EQ(sentence, sentences[0]);
}

}  // namespace
}  // namespace muster::collective::tcp
