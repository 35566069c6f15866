#include "plugins/plugin_backend.h"

#include <gtest/gtest.h>
#include <muster/collective/testing/worlds.h>

#include <cstring>
#include <mutex>

#include "plugins/fake_plugin.h"
#include "tcp/tcp_backend.h"

namespace muster::collective {
namespace {

using testing::FakeTraits;
using testing::Placement;
using testing::reset_fake;

using Body = std::function<void(World&, Backend&)>;

// Low limits, so that small buffers exercise every loop.
constexpr PluginOptions kSmall = {.most_bytes = 64, .exchange_bytes = 100, .fusion_bytes = 64};

void on_ranks(int size, const Body& body) {
  testing::spawn_worlds(size, Placement::host_each(), [&](World& world) {
    Result<std::unique_ptr<PluginBackend>> backend = PluginBackend::open(
        world, testing::fake_plugin(), std::make_unique<tcp::TcpBackend>(world), kSmall);
    ASSERT_TRUE(backend) << backend.error().to_string();
    body(world, **backend);
  });
}

template <typename T>
const std::byte* bytes_of(const std::vector<T>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}
template <typename T>
std::byte* bytes_of(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

Call reduce_call(CallKind kind, DataType type, const Reduction& reduction, std::uint64_t count) {
  return {.kind = kind, .type = type, .reduction = reduction, .count = count, .sequence = 1};
}

float value_of(int rank, std::size_t i) {
  return static_cast<float>(i % 10) + static_cast<float>(rank);
}

std::vector<float> values_of(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value_of(rank, i);
  return values;
}

// The sum over three ranks.
float sum_at(std::size_t i) {
  return value_of(0, i) + value_of(1, i) + value_of(2, i);
}

// The errors of all ranks.
class RankErrors {
 public:
  void add(const Status& status) {
    const std::lock_guard lock(mutex_);
    if (!status) messages_.push_back(status.error());
  }
  const std::vector<Error>& all() const { return messages_; }

 private:
  std::mutex mutex_;
  std::vector<Error> messages_;
};

class WithAndWithoutItsOwnSum : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override { reset_fake({.sums_floats = GetParam()}); }
};
INSTANTIATE_TEST_SUITE_P(Plugin, WithAndWithoutItsOwnSum, ::testing::Bool());

TEST_P(WithAndWithoutItsOwnSum, AllReduceMatchesTheReference) {
  on_ranks(3, [](World& world, Backend& backend) {
    for (const std::size_t count : {0, 1, 2, 7, 100}) {
      const std::vector<float> in = values_of(world.rank, count);
      std::vector<float> out(count);
      const Piece piece{bytes_of(in), bytes_of(out), count};
      const Call call =
          reduce_call(CallKind::kAllReduce, DataType::kFloat32, ReduceOp::kSum, count);
      const Status done = backend.all_reduce(call, {&piece, 1});
      ASSERT_TRUE(done) << done.error().to_string();
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], sum_at(i)) << i << " of " << count;
    }
  });
}

TEST_P(WithAndWithoutItsOwnSum, ScalesAndAveragesMatchTheReference) {
  on_ranks(3, [](World& world, Backend& backend) {
    std::vector<float> values = values_of(world.rank, 100);
    const Piece piece{bytes_of(values), bytes_of(values), values.size()};
    const Call call = reduce_call(CallKind::kAllReduce, DataType::kFloat32,
                                  {ReduceOp::kAverage, 6, 0.5}, values.size());
    ASSERT_TRUE(backend.all_reduce(call, {&piece, 1}));
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], sum_at(i)) << i;
  });
}

TEST_P(WithAndWithoutItsOwnSum, SmallAndLargeTensorsOfAListAreReduced) {
  on_ranks(3, [](World& world, Backend& backend) {
    std::vector<std::vector<float>> tensors;
    std::vector<Piece> pieces;
    for (const std::size_t count : {3, 0, 5, 100, 1, 1, 30}) {
      tensors.push_back(values_of(world.rank, count));
    }
    for (std::vector<float>& tensor : tensors) {
      pieces.push_back({bytes_of(tensor), bytes_of(tensor), tensor.size()});
    }
    const Call call = reduce_call(CallKind::kAllReduce, DataType::kFloat32, ReduceOp::kSum, 140);
    ASSERT_TRUE(backend.all_reduce(call, pieces));
    for (const std::vector<float>& tensor : tensors) {
      for (std::size_t i = 0; i < tensor.size(); ++i) ASSERT_EQ(tensor[i], sum_at(i));
    }
  });
}

// A rank that has joined contributes zeros of the host while others reduce the memory of a device.
TEST(PluginBackend, DividesAListAlikeWhereverItsBuffersLie) {
  reset_fake({.sums_floats = true, .takes_lists = true, .device_rank = 1});
  on_ranks(3, [](World& world, Backend& backend) {
    std::vector<std::vector<float>> tensors = {values_of(world.rank, 3), values_of(world.rank, 5)};
    std::vector<Piece> pieces;
    for (std::vector<float>& tensor : tensors) {
      pieces.push_back({bytes_of(tensor), bytes_of(tensor), tensor.size()});
    }
    const Call call = reduce_call(CallKind::kAllReduce, DataType::kFloat32, ReduceOp::kSum, 8);
    const Status done = backend.all_reduce(call, pieces);
    ASSERT_TRUE(done) << done.error().to_string();
    for (const std::vector<float>& tensor : tensors) {
      for (std::size_t i = 0; i < tensor.size(); ++i) ASSERT_EQ(tensor[i], sum_at(i));
    }
  });
  for (const int rank : {0, 1, 2}) {
    EXPECT_EQ(testing::reduced_pieces(rank), (std::vector<std::uint64_t>{3, 5})) << rank;
  }
}

TEST_P(WithAndWithoutItsOwnSum, ReduceAndReduceScatterMatchTheReference) {
  on_ranks(3, [](World& world, Backend& backend) {
    const std::vector<float> in = values_of(world.rank, 90);
    std::vector<float> out(90);
    Call call = reduce_call(CallKind::kReduce, DataType::kFloat32, ReduceOp::kSum, 90);
    call.root = 2;
    ASSERT_TRUE(backend.reduce(call, bytes_of(in), world.rank == 2 ? bytes_of(out) : nullptr));
    for (std::size_t i = 0; world.rank == 2 && i < out.size(); ++i) ASSERT_EQ(out[i], sum_at(i));

    const std::vector<std::uint64_t> counts = {50, 0, 40};
    const std::size_t first = world.rank == 2 ? 50 : 0;
    call = reduce_call(CallKind::kReduceScatter, DataType::kFloat32, ReduceOp::kSum, 90);
    ASSERT_TRUE(backend.reduce_scatter(call, bytes_of(in), bytes_of(out), counts));
    for (std::size_t i = 0; i < counts[static_cast<std::size_t>(world.rank)]; ++i) {
      ASSERT_EQ(out[i], sum_at(first + i)) << i << " on rank " << world.rank;
    }
  });
}

TEST(PluginBackend, SixteenBitFloatsAreRoundedOnce) {
  reset_fake({});
  on_ranks(3, [](World& world, Backend& backend) {
    // 256 + 1 + 1 in bfloat16 is 256 if each step is rounded, 258 if only the sum is rounded.
    std::vector<std::uint16_t> values(20, world.rank == 0 ? 0x4380 : 0x3F80);
    const Piece piece{bytes_of(values), bytes_of(values), values.size()};
    const Call call = reduce_call(CallKind::kAllReduce, DataType::kBFloat16, ReduceOp::kSum, 20);
    ASSERT_TRUE(backend.all_reduce(call, {&piece, 1}));
    for (const std::uint16_t bits : values) ASSERT_EQ(bits, 0x4381);
  });
}

TEST(PluginBackend, BytesArriveAtTheirRankAndOffset) {
  reset_fake({});
  on_ranks(3, [](World& world, Backend& backend) {
    const std::string mine(static_cast<std::size_t>(world.rank),
                           static_cast<char>('a' + world.rank));
    std::string all(3, '.');
    const std::vector<std::uint64_t> bytes = {0, 1, 2};
    const auto view = [](std::string& text) { return reinterpret_cast<std::byte*>(text.data()); };
    std::string part = mine;
    ASSERT_TRUE(backend.all_gather({.kind = CallKind::kAllGather, .count = 3, .sequence = 1},
                                   view(part), view(all), bytes));
    EXPECT_EQ(all, "bcc");
    std::string word = world.rank == 1 ? "right" : "wrong";
    ASSERT_TRUE(backend.broadcast(
        {.kind = CallKind::kBroadcast, .root = 1, .count = 5, .sequence = 2}, view(word)));
    EXPECT_EQ(word, "right");
    const std::vector<std::uint64_t> one(3, 1);
    std::string out = "...";
    ASSERT_TRUE(backend.all_to_all({.kind = CallKind::kAllToAll, .sequence = 3}, view(all), one,
                                   view(out), one));
    EXPECT_EQ(out, std::string(3, world.rank == 0 ? 'b' : 'c'));
    ASSERT_TRUE(backend.barrier({.kind = CallKind::kBarrier, .sequence = 4}));
    if (world.rank == 0) {
      ASSERT_TRUE(backend.send(view(word), 5, 2));
    }
    if (world.rank == 2) {
      std::string received = ".....";
      ASSERT_TRUE(backend.receive(view(received), 5, 0));
      EXPECT_EQ(received, "right");
    }
  });
}

TEST(PluginBackend, AdasumIsLeftToTheBootstrap) {
  reset_fake({.sums_floats = true});
  on_ranks(2, [](World&, Backend& backend) {
    // The adasum of parallel vectors is their mean.
    std::vector<float> values(10, 3);
    const Piece piece{bytes_of(values), bytes_of(values), values.size()};
    const Call call = reduce_call(CallKind::kAllReduce, DataType::kFloat32, ReduceOp::kAdasum, 10);
    const Status done = backend.all_reduce(call, {&piece, 1});
    ASSERT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(values, std::vector<float>(10, 3));
  });
}

TEST(PluginBackend, CallsThatDifferAreAMismatchOnEveryRank) {
  reset_fake({.sums_floats = true});
  RankErrors errors;
  on_ranks(3, [&](World& world, Backend& backend) {
    std::vector<float> values(10);
    const std::uint64_t count = world.rank == 1 ? 9 : 10;
    const Piece piece{bytes_of(values), bytes_of(values), count};
    const Call call = reduce_call(CallKind::kAllReduce, DataType::kFloat32, ReduceOp::kSum, count);
    errors.add(backend.all_reduce(call, {&piece, 1}));
  });
  ASSERT_EQ(errors.all().size(), 3u);
  for (const Error& error : errors.all()) EXPECT_EQ(error.code, ErrorCode::kMismatch);
}

TEST(PluginBackend, DifferentLengthsAreAMismatchOnEveryRank) {
  reset_fake({});
  RankErrors errors;
  on_ranks(2, [&](World& world, Backend& backend) {
    std::vector<std::byte> in(8);
    std::vector<std::byte> out(8);
    const std::vector<std::uint64_t> sent = {0, world.rank == 0 ? 3u : 0u};
    const std::vector<std::uint64_t> received = {world.rank == 0 ? 0u : 2u, 0};
    errors.add(backend.all_to_all({.kind = CallKind::kAllToAll, .sequence = 1}, in.data(), sent,
                                  out.data(), received));
  });
  ASSERT_EQ(errors.all().size(), 2u);
  for (const Error& error : errors.all()) {
    EXPECT_EQ(error.code, ErrorCode::kMismatch);
    EXPECT_NE(error.message.find("sends 3 bytes"), std::string::npos) << error.message;
  }
}

TEST(PluginBackend, AFailureInsideOfThePluginIsTheFailureOfEveryRank) {
  reset_fake({.sums_floats = true, .breaks_on_rank = 1});
  RankErrors errors;
  on_ranks(3, [&](World&, Backend& backend) {
    std::vector<float> values(10);
    const Piece piece{bytes_of(values), bytes_of(values), values.size()};
    const Call call = reduce_call(CallKind::kAllReduce, DataType::kFloat32, ReduceOp::kSum, 10);
    errors.add(backend.all_reduce(call, {&piece, 1}));
  });
  ASSERT_EQ(errors.all().size(), 3u);
  for (const Error& error : errors.all()) {
    EXPECT_EQ(error.code, ErrorCode::kSystem);
    EXPECT_NE(error.message.find("the wire is cut"), std::string::npos) << error.message;
  }
}

TEST(PluginBackend, ARankThatCannotUseThePluginIsNamedOnAllRanks) {
  reset_fake({.unprepared_calls = 1});
  RankErrors errors;
  testing::spawn_worlds(3, Placement::host_each(), [&](World& world) {
    Result<std::unique_ptr<PluginBackend>> backend = PluginBackend::open(
        world, testing::fake_plugin(), std::make_unique<tcp::TcpBackend>(world), kSmall);
    errors.add(backend ? Status() : Status(backend.error()));
  });
  ASSERT_EQ(errors.all().size(), 3u);
  for (const Error& error : errors.all()) {
    EXPECT_EQ(error.code, ErrorCode::kConfiguration);
    EXPECT_EQ(error.message, errors.all()[0].message);
    EXPECT_NE(error.message.find("the fake has no wire"), std::string::npos) << error.message;
  }
}

}  // namespace
}  // namespace muster::collective
