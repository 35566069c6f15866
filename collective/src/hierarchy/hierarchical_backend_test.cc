#include "hierarchy/hierarchical_backend.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <mutex>
#include <random>
#include <set>
#include <vector>

#include "tcp/test_values.h"
#include "tcp/test_world.h"

namespace muster::collective {
namespace {

// Addresses that are compared but never read.
std::byte* address(std::uintptr_t number) {
  return std::bit_cast<std::byte*>(number);
}

TEST(Chunks, ALongTensorIsDividedWithoutACopy) {
  const Piece piece = {address(0x1000), address(0x2000'0000), (Chunks::kBytes + 8) / 4};
  const Chunks chunks({&piece, 1}, 4);

  const Chunk first = chunks.at(0);
  EXPECT_EQ(first.bytes, Chunks::kBytes);
  EXPECT_EQ(first.in, piece.in);
  const Chunk second = chunks.at(Chunks::kBytes);
  EXPECT_EQ(second.bytes, 8U);
  EXPECT_EQ(second.in, piece.in + Chunks::kBytes);
  EXPECT_EQ(second.out, piece.out + Chunks::kBytes);
}

TEST(Chunks, ShortTensorsArePackedTogether) {
  std::vector<Piece> pieces(10, Piece{address(0x1000), address(0x2000), 25});
  const Chunks chunks(pieces, 4);

  const Chunk all = chunks.at(0);
  EXPECT_EQ(all.bytes, 1000U);
  EXPECT_EQ(all.in, nullptr);
}

TEST(Chunks, TheLastTensorNeedsNoPacking) {
  const std::array<Piece, 2> pieces = {Piece{address(0x1000), address(0x1000), 5},
                                       Piece{address(0x9000), address(0x9000), 5}};
  EXPECT_EQ(Chunks(pieces, 4).at(20).in, address(0x9000));
}

}  // namespace

// The stages on a host run over TCP here, among the ranks of the host: any backend can execute
// them.
namespace {

using testing::expected_value;
using testing::input_of;
using testing::load_value;
using testing::make_worlds;
using testing::on_all;
using Hosts = std::vector<int>;  // by rank

std::unique_ptr<Backend> local_of(World& world) {
  const std::vector<int>& neighbours = world.topology.neighbours_of(world.rank);
  if (neighbours.size() < 2) return nullptr;
  return std::make_unique<tcp::TcpBackend>(world, neighbours, nullptr);
}

// Makes the calls of one rank, with their numbers.
class Caller {
 public:
  explicit Caller(World& world) : world_(world), backend_(world, local_of(world)) {}

  Call call(CallKind kind, std::uint64_t count) {
    const Call call = {.kind = kind, .count = count, .sequence = ++sequence_};
    world_.monitor->entered(call.sequence);
    return call;
  }

  Call reduction(DataType type, const Reduction& reduction, std::uint64_t count) {
    Call made = call(CallKind::kAllReduce, count);
    made.type = type;
    made.reduction = reduction;
    return made;
  }

  HierarchicalBackend& backend() { return backend_; }
  World& world() { return world_; }

 private:
  World& world_;
  HierarchicalBackend backend_;
  std::uint64_t sequence_ = 0;
};

void expect_done(const Status& status) {
  EXPECT_TRUE(status) << status.error().to_string();
}

void all_reduce(Caller& caller, DataType type, const Reduction& reduction, std::uint64_t count,
                bool in_place) {
  const World& world = caller.world();
  std::vector<std::byte> in = input_of(type, world.rank, count);
  std::vector<std::byte> out(in.size());
  std::byte* const target = in_place ? in.data() : out.data();
  const Piece piece = {in.data(), target, count};
  expect_done(caller.backend().all_reduce(caller.reduction(type, reduction, count), {&piece, 1}));
  const std::size_t element = size_of(type);
  for (std::uint64_t i = 0; i < count; ++i) {
    double expected = expected_value(type, reduction, world.size, i);
    if (!is_float(type)) expected = std::trunc(expected);
    const double tolerance = element == 2 && is_float(type) ? 0.02 * std::abs(expected) : 1e-5;
    ASSERT_NEAR(load_value(type, target + i * element), expected, tolerance)
        << to_string(type) << " " << to_string(reduction.op) << " element " << i;
  }
}

class OnHosts : public ::testing::TestWithParam<Hosts> {};
INSTANTIATE_TEST_SUITE_P(Hierarchical, OnHosts,
                         ::testing::Values(Hosts{0, 0, 1, 1}, Hosts{0, 1, 0, 1},
                                           Hosts{0, 0, 0, 1, 1, 1, 2, 2, 2}, Hosts{0, 0, 1},
                                           Hosts{0, 1, 1, 1, 2, 2}, Hosts{0, 0, 0}));

testing::WorldSpec spec_of_hosts(const Hosts& hosts) {
  return {.size = static_cast<int>(hosts.size()), .host_of = hosts};
}

TEST_P(OnHosts, EveryTypeAndLengthIsReduced) {
  on_all(make_worlds(spec_of_hosts(GetParam())), [](World& world) {
    Caller caller(world);
    for (const DataType type : {DataType::kFloat32, DataType::kFloat64, DataType::kFloat16,
                                DataType::kBFloat16, DataType::kInt32, DataType::kBool}) {
      for (const std::uint64_t count :
           {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1009}, std::uint64_t{150'001}}) {
        all_reduce(caller, type, ReduceOp::kSum, count, true);
        all_reduce(caller, type, ReduceOp::kMax, count, false);
      }
    }
    all_reduce(caller, DataType::kFloat32, ReduceOp::kSum, 2'500'003, true);
  });
}

TEST_P(OnHosts, ScalesAndAveragesCoverTheWholeWorld) {
  on_all(make_worlds(spec_of_hosts(GetParam())), [](World& world) {
    Caller caller(world);
    for (const DataType type : {DataType::kFloat32, DataType::kBFloat16, DataType::kInt64}) {
      all_reduce(caller, type, {ReduceOp::kAverage, 2.0, 4.0}, 1009, true);
      all_reduce(caller, type, {ReduceOp::kMin, 2.0, 4.0}, 1009, false);
    }
  });
}

TEST_P(OnHosts, SixteenBitFloatsAreRoundedOnce) {
  on_all(make_worlds(spec_of_hosts(GetParam())), [](World& world) {
    Caller caller(world);
    // 256 + 1 is 256 in bfloat16: if the sum were rounded in between, the ones would be lost.
    std::uint16_t value = world.rank == 0 ? 0x4380 : 0x3f80;
    auto* const bytes = reinterpret_cast<std::byte*>(&value);
    const Piece piece = {bytes, bytes, 1};
    expect_done(caller.backend().all_reduce(
        caller.reduction(DataType::kBFloat16, ReduceOp::kSum, 1), {&piece, 1}));
    // Rounded to nearest even, in steps of 2.
    const int sum = 256 + world.size - 1;
    const int expected = sum % 4 == 1 ? sum - 1 : sum % 4 == 3 ? sum + 1 : sum;
    EXPECT_EQ(load_value(DataType::kBFloat16, bytes), expected);
  });
}

TEST_P(OnHosts, ListsArePackedOnlyWhereTensorsAreShort) {
  on_all(make_worlds(spec_of_hosts(GetParam())), [](World& world) {
    Caller caller(world);
    std::vector<std::vector<float>> tensors;
    std::vector<Piece> pieces;
    std::vector<std::uint64_t> counts = {3, 0, 700'001, 5, 1'200'000, 17};
    std::uint64_t count = 0;
    for (const std::uint64_t length : counts) {
      tensors.emplace_back(length, static_cast<float>(world.rank + 1));
      auto* const bytes = reinterpret_cast<std::byte*>(tensors.back().data());
      pieces.push_back({bytes, bytes, length});
      count += length;
    }
    Call call = caller.reduction(DataType::kFloat32, ReduceOp::kSum, count);
    call.shape = hash_of(counts);
    expect_done(caller.backend().all_reduce(call, pieces));
    const int sum_of_ranks = world.size * (world.size + 1) / 2;  // even before it is halved
    const auto sum = static_cast<float>(sum_of_ranks);
    for (const auto& tensor : tensors) EXPECT_EQ(tensor, std::vector<float>(tensor.size(), sum));
  });
}

TEST_P(OnHosts, EveryRootReachesEveryRank) {
  on_all(make_worlds(spec_of_hosts(GetParam())), [](World& world) {
    Caller caller(world);
    for (int root = 0; root < world.size; ++root) {
      for (const std::uint64_t bytes :
           {std::uint64_t{0}, std::uint64_t{7}, std::uint64_t{300'001}}) {
        std::vector<std::byte> data(bytes, static_cast<std::byte>(world.rank));
        Call call = caller.call(CallKind::kBroadcast, bytes);
        call.root = root;
        expect_done(caller.backend().broadcast(call, data.data()));
        EXPECT_EQ(data, std::vector<std::byte>(bytes, static_cast<std::byte>(root)));
      }
    }
  });
}

TEST_P(OnHosts, NoRankLeavesABarrierBeforeAllHaveEntered) {
  std::atomic<int> entered = 0;
  on_all(make_worlds(spec_of_hosts(GetParam())), [&entered](World& world) {
    Caller caller(world);
    for (int round = 1; round <= 20; ++round) {
      ++entered;
      expect_done(caller.backend().barrier(caller.call(CallKind::kBarrier, 0)));
      EXPECT_GE(entered.load(), round * world.size);
    }
  });
}

TEST_P(OnHosts, OtherCollectivesGoFromRankToRank) {
  on_all(make_worlds(spec_of_hosts(GetParam())), [](World& world) {
    Caller caller(world);
    const std::vector<std::uint64_t> ones(static_cast<std::size_t>(world.size), 1);
    const auto own = static_cast<std::byte>(world.rank);
    std::vector<std::byte> all(ones.size());
    expect_done(caller.backend().all_gather(caller.call(CallKind::kAllGather, ones.size()), &own,
                                            all.data(), ones));
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<std::byte>(i));
  });
}

TEST_P(OnHosts, AllRanksHaveTheSameBits) {
  std::vector<std::vector<float>> results;
  std::mutex mutex;
  on_all(make_worlds(spec_of_hosts(GetParam())), [&](World& world) {
    Caller caller(world);
    std::minstd_rand random(static_cast<unsigned>(world.rank) + 1);
    std::uniform_real_distribution<float> values(-1e6F, 1e6F);
    std::vector<float> data(100'003);
    for (float& value : data) value = values(random);
    auto* const bytes = reinterpret_cast<std::byte*>(data.data());
    const Piece piece = {bytes, bytes, data.size()};
    expect_done(caller.backend().all_reduce(
        caller.reduction(DataType::kFloat32, ReduceOp::kAverage, data.size()), {&piece, 1}));
    const std::lock_guard lock(mutex);
    results.push_back(std::move(data));
  });
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

TEST(Hierarchical, DifferentCallsAreReportedAsTheRanksMadeThem) {
  std::set<std::string> messages;
  std::mutex mutex;
  on_all(make_worlds({.size = 4, .host_of = {0, 0, 1, 1}}), [&](World& world) {
    Caller caller(world);
    const std::uint64_t count = world.rank < 2 ? 1000 : 2000;
    std::vector<float> data(count);
    auto* const bytes = reinterpret_cast<std::byte*>(data.data());
    const Piece piece = {bytes, bytes, count};
    Status status = caller.backend().all_reduce(
        caller.reduction(DataType::kFloat32, ReduceOp::kSum, count), {&piece, 1});
    const std::lock_guard lock(mutex);
    messages.insert(status ? "none" : status.error().message);
  });
  for (const std::string& message : messages) {
    EXPECT_NE(message.find("makes call 1 (all_reduce of 1000 float32, sum), but"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("makes call 1 (all_reduce of 2000 float32, sum)"), std::string::npos)
        << message;
  }
}

TEST(Hierarchical, ExplainsBothStages) {
  on_all(make_worlds({.size = 4, .host_of = {0, 0, 1, 1}}), [](World& world) {
    const HierarchicalBackend backend(world, local_of(world));
    const std::string sentence = backend.explain(DataType::kFloat32, 1 << 20);
    EXPECT_NE(sentence.find("2 hosts"), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("between them tcp, "), std::string::npos) << sentence;
  });
}

}  // namespace
}  // namespace muster::collective
