// How worlds join, and how joining fails.

#include "world/join.h"

#include <gtest/gtest.h>
#include <muster/collective/testing/worlds.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include "bootstrap/acceptor.h"
#include "bootstrap/meet.h"
#include "transport/socket.h"
#include "transport/test_deadline.h"

namespace muster::collective {
namespace {

using std::chrono::milliseconds;
using testing::ample_memory;
using testing::join_all;
using testing::on_threads;
using testing::Placement;
using testing::soon;
using testing::spawn_worlds;
using testing::world_of;

// Joins one rank for each element of `world`. Returns the error of each rank, or an empty text.
std::vector<std::string> outcomes(const std::vector<Options>& world) {
  std::vector<std::string> errors(world.size());
  on_threads(static_cast<int>(world.size()), [&](int i) {
    const auto index = static_cast<std::size_t>(i);
    const auto joined = join(world[index], ample_memory);
    if (!joined) errors[index] = joined.error().message;
  });
  return errors;
}

TEST(Join, WorksInAnyOrderOfArrival) {
  std::vector<Options> world = world_of(3);
  std::atomic<int> met = 0;
  const auto come = [&](std::size_t rank) {
    const auto joined = join(world[rank], ample_memory);
    ASSERT_TRUE(joined) << joined.error().to_string();
    ++met;
  };
  {
    // Without its listener rank 0 opens the port itself, while the other ranks already try to
    // connect.
    Descriptor(world[0].listener).close();
    world[0].listener = -1;
    std::jthread two([&] { come(2); });
    std::jthread one([&] { come(1); });
    std::jthread zero([&] { come(0); });
  }
  EXPECT_EQ(met, 3);
}

TEST(Join, AWorldOfOneOpensNoSocket) {
  const auto world = join({.rank = 0, .size = 1}, ample_memory);
  ASSERT_TRUE(world);
  EXPECT_EQ((*world)->size, 1);
  EXPECT_EQ((*world)->monitor, nullptr);
}

TEST(Join, LeavesNoPortOpen) {
  const std::vector<Options> world = world_of(2);
  const Address rendezvous = resolve(world[0].rendezvous)->front();
  join_all(world, [&](World&) { EXPECT_FALSE(connect_to(rendezvous, soon())); });
}

TEST(Join, MeetsByAPrivateFileThatIsRemovedAfterwards) {
  std::string pattern = (std::filesystem::temp_directory_path() / "join-test-XXXXXX").string();
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  const std::string& root = pattern;
  on_threads(3, [&](int rank) {
    // Twice: remains of the first world must not disturb the second.
    for (int world = 0; world < 2; ++world) {
      const auto joined =
          join({.rank = rank, .size = 3, .rendezvous_file = root + "/private/world"}, ample_memory);
      ASSERT_TRUE(joined) << joined.error().to_string();
    }
  });
  EXPECT_TRUE(std::filesystem::is_empty(root + "/private"));
  std::filesystem::remove_all(root);
}

TEST(Join, IgnoresStrangersAtTheRendezvous) {
  const std::vector<Options> world = world_of(2);
  const Address rendezvous = resolve(world[0].rendezvous)->front();
  const Result<Descriptor> silent = connect_to(rendezvous, soon());
  const Result<Descriptor> scanner = connect_to(rendezvous, soon());
  ASSERT_TRUE(send_all(*scanner, view_of(std::string(5000, '\xff')), soon()));

  EXPECT_EQ(outcomes(world), (std::vector<std::string>{"", ""}));
}

TEST(Join, NamesBothRanksIfTheirWorldSizesDiffer) {
  std::vector<Options> world = world_of(2);
  world[1].size = 3;
  const std::string expected =
      "rank 1 on host host-1 belongs to a world of 3 ranks, but rank 0 on host host-0 to a world "
      "of 2";
  EXPECT_EQ(outcomes(world), (std::vector<std::string>{expected, expected}));
}

TEST(Join, ReportsADuplicateRankOnAllRanks) {
  std::vector<Options> world = world_of(3);
  world[2].rank = 1;
  for (const std::string& error : outcomes(world)) {
    EXPECT_TRUE(error.starts_with("rank 1 joined twice: from host host-")) << error;
    EXPECT_NE(error.find("host-1 (127.0.0.1:"), std::string::npos) << error;
    EXPECT_NE(error.find("host-2 (127.0.0.1:"), std::string::npos) << error;
  }
}

TEST(Join, NamesBothRanksIfTheirKeysDiffer) {
  std::vector<Options> world = world_of(2, milliseconds(5000));
  world[1].key = "ffffffffffffffffffffffffffffffff";

  const std::vector<std::string> errors = outcomes(world);

  EXPECT_EQ(errors[1], "rank 1 on host host-1 cannot join rank 0 at " + world[0].rendezvous +
                           ": the two ranks hold different keys");
  EXPECT_TRUE(
      errors[0].starts_with("rank 1 of 2 did not reach rank 0 on host host-0 within "
                            "5 s; 1 other connection was dropped, from 127.0.0.1:"))
      << errors[0];
}

TEST(Join, NamesTheMissingRanks) {
  std::vector<Options> world = world_of(4, milliseconds(5000));
  world.resize(2);
  const std::string expected = "ranks 2, 3 of 4 did not reach rank 0 on host host-0 within 5 s";

  const std::vector<std::string> errors = outcomes(world);

  EXPECT_EQ(errors[0], expected);
  // Rank 1 waits a second longer than rank 0, which a busy machine may use up.
  EXPECT_TRUE(errors[1] == expected || errors[1].starts_with("rank 0 still waited")) << errors[1];
}

// The other side of rank 1's connection is the test, which sees when rank 1 has introduced itself.
TEST(Join, EndsWhenItIsCancelledWhileItWaitsForOtherRanks) {
  std::vector<Options> world = world_of(3, std::chrono::minutes(10));
  std::vector<Descriptor> listeners;
  listeners.emplace_back(world[0].listener);
  Acceptor rank_0(std::move(listeners), *parse_key(world[1].key), 3);
  std::array<int, 2> cancel = {};
  ASSERT_EQ(::pipe(cancel.data()), 0);
  const Descriptor is_cancelled(cancel[0]);
  const Descriptor cancels(cancel[1]);
  Status outcome;
  std::jthread rank_1([&] {
    const auto joined = join(world[1], ample_memory, is_cancelled.get());
    if (!joined) outcome = joined.error();
  });
  const Result<AcceptedPeer> peer = rank_0.next(soon());
  EXPECT_TRUE(peer) << peer.error().to_string();
  EXPECT_EQ(::write(cancels.get(), "x", 1), 1);
  rank_1.join();

  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kPeerLost);
  EXPECT_EQ(outcome.error().message,
            "rank 1 on host host-1 was cancelled while it waited for the other ranks");
}

// Rank 2 never comes.
TEST(Join, NamesARankThatCameAndEnded) {
  const std::vector<Options> world = world_of(3);
  std::jthread rank_1([&] {
    const Result<Descriptor> socket = connect_to(resolve(world[1].rendezvous)->front(), soon());
    ASSERT_TRUE(socket) << socket.error().to_string();
    const RankIdentity self{.rank = 1, .size = 3, .host = "host-1", .endpoint = "127.0.0.1:9"};
    EXPECT_TRUE(introduce(*socket, *parse_key(world[1].key), Purpose::kRendezvous, self, soon()));
  });
  const auto joined = join(world[0], ample_memory);
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code, ErrorCode::kPeerLost);
  EXPECT_EQ(joined.error().rank, 1);
  EXPECT_EQ(joined.error().message,
            "rank 1 on host host-1 is gone: it ended while the ranks joined (connection closed)");
}

TEST(Join, LooksForRank0AgainForEachAttempt) {
  const std::vector<Options> world = world_of(2);
  const Bytes key = *parse_key(world[0].key);
  Result<Descriptor> other = listen_on(resolve(world[0].rendezvous)->front().with_port(0));
  const std::string closed = local_address(other->get()).to_string();
  other->close();
  int looks = 0;
  const Finder find = [&]() -> Result<std::optional<Meeting>> {
    if (++looks == 2) return std::optional<Meeting>();
    return std::optional<Meeting>({looks == 1 ? closed : world[0].rendezvous, key});
  };
  Options guest = world[1];
  guest.rendezvous.clear();
  guest.key.clear();
  on_threads(2, [&](int rank) {
    const auto joined =
        rank == 0 ? join(world[0], ample_memory) : join(guest, ample_memory, -1, find);
    ASSERT_TRUE(joined) << joined.error().to_string();
  });
  EXPECT_EQ(looks, 3);
}

TEST(Join, NamesTheAddressWhereItLookedForRank0) {
  std::vector<Options> world = world_of(2, milliseconds(1000));
  Descriptor(world[0].listener).close();
  const auto joined = join(world[1], ample_memory);
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().message,
            "rank 1 on host host-1 did not reach rank 0 within 1 s: cannot connect to " +
                world[1].rendezvous + ": Connection refused");
}

TEST(Join, RejectsAWildcardAddress) {
  Options options = world_of(2)[0];
  Descriptor(options.listener).close();
  options.listener = -1;
  options.rendezvous = "0.0.0.0:4000";
  const auto joined = join(options, ample_memory);
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().message, "other ranks cannot reach the rendezvous '0.0.0.0:4000'");
}

TEST(Join, OnOneHostMapsOneMemoryAndOpensNoStreams) {
  for (const int size : {2, 3, 8}) {
    spawn_worlds(size, Placement::one_host(), [&](World& world) {
      EXPECT_TRUE(world.topology.is_one_shared_host());
      ASSERT_TRUE(world.memory);
      EXPECT_EQ(world.memory.bytes(), ample_memory(size, std::uint64_t{64} << 20));
      for (const Streams& streams : world.streams) EXPECT_TRUE(streams.sockets.empty());
    });
  }
}

// Writes this rank's number to every stream, and reads the number of the rank at the other end.
void expect_streams(const World& world, int other, std::size_t count) {
  const Streams& streams = world.streams[static_cast<std::size_t>(other)];
  ASSERT_EQ(streams.sockets.size(), count);
  for (std::size_t i = 0; i < count; ++i) {
    const Bytes mine = ByteWriter().number(world.rank).number(static_cast<int>(i)).take();
    ASSERT_TRUE(send_all(streams.sockets[i], mine, soon()));
  }
  for (std::size_t i = 0; i < count; ++i) {
    Bytes theirs(8);
    ASSERT_TRUE(receive_all(streams.sockets[i], theirs, soon()));
    EXPECT_EQ(theirs, ByteWriter().number(other).number(static_cast<int>(i)).take());
  }
}

TEST(Join, BetweenHostsOpensStreamsInOneOrder) {
  for (const int size : {2, 3, 7}) {
    std::vector<Options> options = world_of(size, testing::kPatience, Placement::host_each());
    options[0].streams = 2;
    join_all(options, [&](World& world) {
      EXPECT_EQ(world.topology.hosts(), size);
      EXPECT_FALSE(world.memory);
      for (int other = 0; other < size; ++other) {
        expect_streams(world, other, other == world.rank ? 0 : 2);
      }
    });
  }
}

TEST(Join, OverHostsOfSeveralRanksHasMemoryAndStreams) {
  spawn_worlds(4, {.ranks_per_host = 2}, [&](World& world) {
    EXPECT_TRUE(world.topology.is_hierarchical());
    EXPECT_TRUE(world.memory);
    for (int other = 0; other < 4; ++other) {
      expect_streams(world, other, other == world.rank ? 0 : 1);
    }
  });
}

TEST(Join, TakesTheTermsOfRank0AndTheSmallestArena) {
  std::vector<Options> options = world_of(3);
  options[0].transport = "tcp";
  options[0].streams = 3;
  options[1].streams = 5;
  options[2].arena_bytes = std::uint64_t{4} << 20;
  join_all(options, [](World& world) {
    EXPECT_EQ(world.options.transport, "tcp");
    EXPECT_EQ(world.options.arena_bytes, std::uint64_t{4} << 20);
    EXPECT_FALSE(world.memory);
    for (int other = 0; other < 3; ++other) {
      expect_streams(world, other, other == world.rank ? 0 : 3);
    }
  });
}

TEST(Join, JoinsALargeWorld) {
  std::atomic<int> joined = 0;
  spawn_worlds(64, Placement::one_host(), [&](World& world) {
    EXPECT_TRUE(world.memory);
    ++joined;
  });
  EXPECT_EQ(joined, 64);
}

TEST(Join, JoinsALargeWorldOfManyHosts) {
  std::atomic<int> joined = 0;
  spawn_worlds(24, {.ranks_per_host = 3}, [&](World&) { ++joined; });
  EXPECT_EQ(joined, 24);
}

TEST(Join, RejectsTheTransportShmBetweenHosts) {
  std::vector<Options> options = world_of(3, testing::kPatience, {.ranks_per_host = 2});
  options[0].transport = "shm";
  const std::string expected =
      "the transport shm requires all ranks on one host, but rank 0 on host host-0 and rank 2 on "
      "host host-2 are on two hosts";
  EXPECT_EQ(outcomes(options), (std::vector<std::string>{expected, expected, expected}));
}

}  // namespace
}  // namespace muster::collective
