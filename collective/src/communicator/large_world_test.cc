// Worlds that are too large for connections between all ranks: few connections, and the same errors
// as in a small one. Ranks that die are processes of their own, ended by a signal.
#include <gtest/gtest.h>
#include <muster/collective/testing/spawn_ranks.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <csignal>
#include <filesystem>
#include <list>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "control/graph.h"
#include "muster/collective/communicator.h"
#include "muster/collective/session.h"
#include "transport/socket.h"

namespace muster::collective {
namespace {

using testing::on_threads;
using testing::Placement;
using testing::world_of;

// A rank that joins, makes one call and does nothing until it is killed. Must be made before the
// test has threads.
class KilledRank {
 public:
  KilledRank(const Options& options, int rendezvous) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    Descriptor(rendezvous).close();
    Result<Communicator> world = Communicator::connect(options);
    if (world && world->barrier()) ::pause();
    ::_exit(1);
  }
  ~KilledRank() {
    kill();
    ::waitpid(pid_, nullptr, 0);
  }
  KilledRank(const KilledRank&) = delete;
  KilledRank& operator=(const KilledRank&) = delete;
  void kill() const { ::kill(pid_, SIGKILL); }

 private:
  pid_t pid_;
};

// A world in which `victims` are killed at the same time, while the other ranks wait in a barrier.
// Returns the ranks that they name.
std::multiset<int> named_when_killed(int size, const std::set<int>& victims, Placement placement) {
  const std::vector<Options> world = world_of(size, testing::kPatience, placement);
  std::list<KilledRank> processes;
  for (const int victim : victims) {
    processes.emplace_back(world[static_cast<std::size_t>(victim)], world[0].listener);
  }
  std::mutex mutex;
  std::multiset<int> named;
  std::barrier met(size - static_cast<int>(victims.size()));
  on_threads(size, [&](int rank) {
    if (victims.contains(rank)) return;
    Result<Communicator> joined = Communicator::connect(world[static_cast<std::size_t>(rank)]);
    ASSERT_TRUE(joined) << joined.error().to_string();
    Status status = joined->barrier();
    ASSERT_TRUE(status) << status.error().to_string();
    met.arrive_and_wait();
    if (rank == 0) {
      for (const KilledRank& process : processes) process.kill();
    }
    status = joined->barrier();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kPeerLost) << status.error().message;
    const std::lock_guard lock(mutex);
    named.insert(status.error().rank);
  });
  return named;
}

TEST(LargeWorld, NamesAKilledRankOnAllRanks) {
  for (const Placement placement : {Placement::one_host(), Placement{.ranks_per_host = 8}}) {
    const std::multiset<int> named = named_when_killed(64, {40}, placement);
    EXPECT_EQ(named.size(), 63u);
    EXPECT_EQ(named.count(40), 63u);
  }
}

TEST(LargeWorld, NamesOneOfTwoRanksThatAreKilledAtOnce) {
  const std::multiset<int> named = named_when_killed(64, {20, 51}, Placement::one_host());
  EXPECT_EQ(named.size(), 62u);
  EXPECT_EQ(named.count(20) + named.count(51), 62u);
}

TEST(LargeWorld, NamesOneOfTheNeighboursOfARankThatAreAllKilled) {
  const std::vector<int> neighbours = neighbours_of(7, 32);
  const std::set<int> victims(neighbours.begin(), neighbours.end());
  const std::multiset<int> named = named_when_killed(32, victims, Placement::one_host());
  EXPECT_EQ(named.size(), 32 - victims.size());
  EXPECT_TRUE(std::ranges::all_of(named, [&](int rank) { return victims.contains(rank); }));
}

int open_sockets() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.starts_with("socket:")) ++count;
  }
  return count;
}

// All ranks are threads of this process. A rank has two sockets that listen.
TEST(LargeWorld, HasAsManyConnectionsAsTheLogarithmOfItsSize) {
  constexpr int kRanks = 64;
  constexpr int kLog2 = 6;
  struct Case {
    Placement placement;
    int most;
  };
  for (const Case& one : {Case{Placement::one_host(), 2 * kLog2 + 2},
                          Case{Placement{.ranks_per_host = 8}, 2 * kLog2 + 2 + 8}}) {
    const int before = open_sockets();
    std::barrier met(kRanks);
    const std::vector<Options> world = world_of(kRanks, testing::kPatience, one.placement);
    on_threads(kRanks, [&](int rank) {
      Result<Communicator> joined = Communicator::connect(world[static_cast<std::size_t>(rank)]);
      ASSERT_TRUE(joined) << joined.error().to_string();
      ASSERT_TRUE(joined->barrier());
      met.arrive_and_wait();
      if (rank == 0) {
        EXPECT_LE(open_sockets() - before, kRanks * one.most);
      }
      met.arrive_and_wait();
    });
  }
}

TEST(LargeWorld, GoesOnWhenRanksLeaveThatAreNoLongerNeeded) {
  constexpr int kRanks = 20;
  for (const Placement placement : {Placement::one_host(), Placement::host_each()}) {
    const std::vector<Options> world = world_of(kRanks, testing::kPatience, placement);
    std::atomic<int> left = 0;
    on_threads(kRanks, [&](int rank) {
      {
        Result<Communicator> joined = Communicator::connect(world[static_cast<std::size_t>(rank)]);
        ASSERT_TRUE(joined) << joined.error().to_string();
        ASSERT_TRUE(joined->barrier());
        if (rank == 2 || rank == 13) {
          for (int now = left; now < kRanks - 2; now = left) left.wait(now);
          int value = rank;
          const Status done = rank == 2 ? joined->send(&value, sizeof value, 13)
                                        : joined->receive(&value, sizeof value, 2);
          EXPECT_TRUE(done) << done.error().to_string();
          EXPECT_EQ(value, 2);
          return;
        }
      }
      ++left;
      left.notify_all();
    });
  }
}

// Every rank of these calls uses connections to other ranks for the first time, and both ends of a
// connection begin at once.
TEST(LargeWorld, OpensDataConnectionsWhenBothEndsBeginAtOnce) {
  constexpr int kRanks = 18;
  std::vector<Options> world = world_of(kRanks, testing::kPatience, Placement::host_each());
  world[0].streams = 2;
  on_threads(kRanks, [&](int rank) {
    Result<Communicator> joined = Communicator::connect(world[static_cast<std::size_t>(rank)]);
    ASSERT_TRUE(joined) << joined.error().to_string();
    std::vector<int> out(kRanks);
    const std::vector<int> in(kRanks, rank);
    const Status exchanged = joined->all_to_all(in.data(), out.data(), sizeof(int));
    ASSERT_TRUE(exchanged) << exchanged.error().to_string();
    for (int other = 0; other < kRanks; ++other)
      EXPECT_EQ(out[static_cast<std::size_t>(other)], other);
  });
}

// A short message is sent before its receiver asks for it, in both directions of a pair.
TEST(LargeWorld, SendsAShortMessageToARankThatDoesNotReceiveYet) {
  constexpr int kRanks = 18;
  const std::vector<Options> world = world_of(kRanks, testing::kPatience, Placement::host_each());
  std::barrier sent(kRanks);
  on_threads(kRanks, [&](int rank) {
    Result<Communicator> joined = Communicator::connect(world[static_cast<std::size_t>(rank)]);
    ASSERT_TRUE(joined) << joined.error().to_string();
    const int partner = (rank + kRanks / 2) % kRanks;
    int value = rank;
    const Status done = joined->send(&value, sizeof value, partner);
    ASSERT_TRUE(done) << done.error().to_string();
    sent.arrive_and_wait();
    ASSERT_TRUE(joined->receive(&value, sizeof value, partner));
    EXPECT_EQ(value, partner);
  });
}

TEST(LargeWorld, NamesBothCallsOfRanksThatMakeDifferentOnes) {
  constexpr int kRanks = 20;
  const std::vector<Options> world = world_of(kRanks, testing::kPatience, {.ranks_per_host = 10});
  on_threads(kRanks, [&](int rank) {
    Result<Communicator> joined = Communicator::connect(world[static_cast<std::size_t>(rank)]);
    ASSERT_TRUE(joined) << joined.error().to_string();
    std::array<float, 6> values = {};
    const std::uint64_t count = rank == 7 ? 5 : 6;
    const Status status = joined->all_reduce(values.data(), count, ReduceOp::kSum);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kMismatch) << status.error().message;
    EXPECT_NE(status.error().message.find("rank 7 on host host-7 makes call 1 (all_reduce of 5"),
              std::string::npos)
        << status.error().message;
  });
}

TEST(LargeWorld, FormsAGroupOfAnyRanks) {
  constexpr int kRanks = 24;
  const std::vector<Options> world = world_of(kRanks, testing::kPatience, {.ranks_per_host = 6});
  on_threads(kRanks, [&](int rank) {
    Result<Communicator> joined = Communicator::connect(world[static_cast<std::size_t>(rank)]);
    ASSERT_TRUE(joined) << joined.error().to_string();
    // Every third rank; the first one is a neighbour of few of the others.
    std::vector<int> members;
    for (int other = rank % 3; other < kRanks; other += 3) members.push_back(other);
    Result<Communicator> group = joined->group(members);
    ASSERT_TRUE(group) << group.error().to_string();
    float one = 1;
    ASSERT_TRUE(group->all_reduce(&one, 1, ReduceOp::kSum));
    EXPECT_EQ(one, 8);
  });
}

// The messages of a session between hosts go over control connections.
TEST(LargeWorld, CarriesTheMessagesOfASessionAndNotifiesAllRanksOfOneThatLeaves) {
  constexpr int kRanks = 20;
  const std::vector<Options> world = world_of(kRanks, testing::kPatience, {.ranks_per_host = 10});
  on_threads(kRanks, [&](int rank) {
    Result<Communicator> joined = Communicator::connect(world[static_cast<std::size_t>(rank)]);
    ASSERT_TRUE(joined) << joined.error().to_string();
    Result<Session> session = Session::start(*std::move(joined));
    ASSERT_TRUE(session) << session.error().to_string();
    float one = 1;
    const auto sum = session->all_reduce("sum", &one, &one, 1, DataType::kFloat32, ReduceOp::kSum);
    ASSERT_TRUE(sum);
    const Status summed = session->wait(*sum);
    ASSERT_TRUE(summed) << summed.error().to_string();
    EXPECT_EQ(one, kRanks);

    const int partner = (rank + kRanks / 2) % kRanks;
    int value = -1;
    const auto sent = session->send(&rank, sizeof rank, partner);
    const auto received = session->receive(&value, sizeof value, partner);
    ASSERT_TRUE(sent);
    ASSERT_TRUE(received);
    for (const Ticket ticket : {*sent, *received}) {
      const Status done = session->wait(ticket);
      EXPECT_TRUE(done) << done.error().to_string();
    }
    EXPECT_EQ(value, partner);

    // Rank 6 leaves without a message to rank 13, which waits for one.
    if (rank != 13) return;
    const auto never = session->receive(&value, sizeof value, 6, 1);
    ASSERT_TRUE(never);
    const Status status = session->wait(*never);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kPeerLost);
    EXPECT_EQ(status.error().rank, 6) << status.error().message;
  });
}

}  // namespace
}  // namespace muster::collective
