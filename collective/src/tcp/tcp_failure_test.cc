#include <gtest/gtest.h>

#include <array>
#include <latch>
#include <mutex>
#include <set>

#include "tcp/tcp_backend.h"
#include "tcp/test_world.h"

namespace muster::collective::tcp {
namespace {

using testing::make_worlds;
using testing::on_all;
using testing::Worlds;

// The errors of all ranks; a rank without an error has an empty message.
class Outcomes {
 public:
  void add(Status status) {
    const std::lock_guard lock(mutex_);
    messages_.insert(status ? "" : status.error().message);
    if (!status) codes_.insert(status.error().code);
  }
  const std::set<std::string>& messages() const { return messages_; }
  const std::set<ErrorCode>& codes() const { return codes_; }

 private:
  std::mutex mutex_;
  std::set<std::string> messages_;
  std::set<ErrorCode> codes_;
};

Call numbered(CallKind kind, std::uint64_t sequence, std::uint64_t count, int root = 0) {
  return {.kind = kind, .root = root, .count = count, .sequence = sequence};
}

Call summed(std::uint64_t sequence, std::uint64_t count) {
  return {.kind = CallKind::kAllReduce,
          .type = DataType::kFloat32,
          .reduction = ReduceOp::kSum,
          .count = count,
          .sequence = sequence};
}

Status all_reduce_zeros(TcpBackend& backend, std::uint64_t sequence, std::uint64_t count) {
  std::vector<std::byte> data(count * sizeof(float));
  const Piece piece = {data.data(), data.data(), count};
  return backend.all_reduce(summed(sequence, count), {&piece, 1});
}

TEST(TcpFailure, DifferentLengthsAreNamedOnEveryRank) {
  Outcomes outcomes;
  on_all(make_worlds({.size = 4}), [&](World& world) {
    TcpBackend backend(world);
    world.monitor->entered(1);
    Status status = all_reduce_zeros(backend, 1, world.rank == 2 ? 7 : 5);
    // A rank whose own part was correct gets the error in its next call.
    if (status) status = backend.barrier(numbered(CallKind::kBarrier, 2, 0));
    outcomes.add(status);
  });
  // Several ranks may detect the mismatch at the same time, each with its own call.
  for (const std::string& message : outcomes.messages()) {
    EXPECT_NE(message.find("rank 2 on host host-2 makes call 1 (all_reduce of 7 float32, sum)"),
              std::string::npos)
        << message;
  }
  EXPECT_EQ(outcomes.codes(), std::set{ErrorCode::kMismatch});
}

TEST(TcpFailure, DifferentCallsOfRanksThatWaitForEachOtherAreDetected) {
  Outcomes outcomes;
  on_all(make_worlds({.size = 2}), [&](World& world) {
    TcpBackend backend(world);
    world.monitor->entered(1);
    // Each rank regards the other as the root: both wait, and neither sends.
    std::array<std::byte, 4> data = {};
    outcomes.add(
        backend.broadcast(numbered(CallKind::kBroadcast, 1, 4, 1 - world.rank), data.data()));
  });
  ASSERT_EQ(outcomes.messages().size(), 1U);
  EXPECT_EQ(*outcomes.messages().begin(),
            "rank 0 on host host-0 makes call 1 (broadcast of 4 bytes from rank 1), but rank 1 on "
            "host host-1 makes call 1 (broadcast of 4 bytes from rank 0)");
}

TEST(TcpFailure, DifferentLengthsWithinAPairAreAMismatch) {
  Outcomes outcomes;
  on_all(make_worlds({.size = 2}), [&](World& world) {
    TcpBackend backend(world);
    world.monitor->entered(1);
    const std::vector<std::uint64_t> sent = {1, 1};
    const std::vector<std::uint64_t> received = {1, world.rank == 0 ? 2U : 1U};
    std::array<std::byte, 4> in = {};
    std::array<std::byte, 4> out = {};
    Status status = backend.all_to_all(numbered(CallKind::kAllToAll, 1, 0), in.data(), sent,
                                       out.data(), received);
    if (status) status = backend.barrier(numbered(CallKind::kBarrier, 2, 0));
    outcomes.add(status);
  });
  EXPECT_EQ(outcomes.messages().size(), 1U);
  EXPECT_EQ(outcomes.codes(), std::set{ErrorCode::kMismatch});
}

TEST(TcpFailure, DifferentLengthsOfSendAndReceiveAreAMismatch) {
  Outcomes outcomes;
  on_all(make_worlds({.size = 2}), [&](World& world) {
    TcpBackend backend(world);
    std::array<std::byte, 8> data = {};
    Status status =
        world.rank == 0 ? backend.send(data.data(), 5, 1) : backend.receive(data.data(), 8, 0);
    if (status) status = backend.barrier(numbered(CallKind::kBarrier, 1, 0));
    outcomes.add(status);
  });
  ASSERT_EQ(outcomes.messages().size(), 1U);
  EXPECT_EQ(*outcomes.messages().begin(),
            "rank 0 on host host-0 makes call 1 (send of 5 bytes to rank 1), but rank 1 on host "
            "host-1 makes call 1 (send of 8 bytes to rank 1)");
}

// A rank that dies loses all of its connections at once.
void die(World& world) {
  for (Streams& streams : world.streams) streams.sockets.clear();
}

TEST(TcpFailure, ALostDataConnectionNamesItsRankOnAllOtherRanks) {
  for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{4'000'000}}) {
    Outcomes outcomes;
    on_all(make_worlds({.size = 4}), [&](World& world) {
      TcpBackend backend(world);
      if (world.rank == 1) return die(world);
      Status status;
      for (std::uint64_t call = 1; call <= 3 && status; ++call) {
        world.monitor->entered(call);
        status = all_reduce_zeros(backend, call, count);
      }
      outcomes.add(status);
    });
    for (const std::string& message : outcomes.messages()) {
      EXPECT_EQ(message.substr(0, 30), "rank 1 on host host-1 is gone:");
    }
    EXPECT_EQ(outcomes.codes(), std::set{ErrorCode::kPeerLost});
  }
}

TEST(TcpFailure, AFailureOfTheWorldEndsACallThatWaits) {
  Outcomes outcomes;
  on_all(make_worlds({.size = 3}), [&](World& world) {
    TcpBackend backend(world);
    if (world.rank == 2) {
      outcomes.add(world.monitor->fail({ErrorCode::kSystem, "no more of this"}));
      return;
    }
    outcomes.add(backend.barrier(numbered(CallKind::kBarrier, 1, 0)));
    outcomes.add(backend.barrier(numbered(CallKind::kBarrier, 2, 0)));
  });
  EXPECT_EQ(outcomes.messages(), std::set<std::string>{"no more of this"});
}

TEST(TcpFailure, ARankThatDoesNotEnterIsNamedAfterTheTimeout) {
  Outcomes outcomes;
  const Worlds worlds = make_worlds({.size = 3, .timeout = std::chrono::seconds(3)});
  std::latch entered(2);
  on_all(worlds, [&](World& world) {
    TcpBackend backend(world);
    if (world.rank == 1) return;
    world.monitor->entered(1);
    entered.arrive_and_wait();
    outcomes.add(backend.barrier(numbered(CallKind::kBarrier, 1, 0)));
  });
  // Both ranks may time out at the same moment, each with an error of its own.
  for (const std::string& message : outcomes.messages()) {
    EXPECT_TRUE(message.starts_with("rank 1 on host host-1 did not enter call 1")) << message;
  }
  EXPECT_EQ(outcomes.codes(), std::set{ErrorCode::kTimeout});
}

}  // namespace
}  // namespace muster::collective::tcp
