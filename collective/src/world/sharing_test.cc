// The ranks of a host share memory if they can, and otherwise use streams or fail.
#include <gtest/gtest.h>
#include <muster/collective/testing/worlds.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "world/join.h"

namespace muster::collective {
namespace {

using testing::ample_memory;
using testing::Placement;

// More than any address space: every rank of the world requests it, and all requests fail.
std::uint64_t impossible_memory(int, std::uint64_t) {
  return std::uint64_t{1} << 60;
}

TEST(Sharing, ShowsEachRankTheWritesOfTheOthers) {
  std::atomic<int> written = 0;
  testing::spawn_worlds(4, Placement{2}, [&](World& world) {
    world.memory.base()[world.rank] = std::byte{1};
    ++written;
    while (written < 4) std::this_thread::yield();
    for (int rank = 0; rank < 4; ++rank) {
      const bool is_near = rank / 2 == world.rank / 2;
      EXPECT_EQ(world.memory.base()[rank], std::byte{is_near ? std::uint8_t{1} : std::uint8_t{0}});
    }
    ++written;
    while (written < 8) std::this_thread::yield();
  });
}

TEST(Sharing, ThatIsImpossibleIsReplacedByStreams) {
  testing::spawn_worlds(
      3, Placement::one_host(),
      [](World& world) {
        EXPECT_FALSE(world.memory);
        EXPECT_FALSE(world.topology.is_one_shared_host());
        EXPECT_EQ(world.unshared,
                  "rank 0 on host host-0 cannot share memory: cannot map shared memory: Cannot "
                  "allocate memory");
        for (int other = 0; other < 3; ++other) {
          EXPECT_EQ(world.streams[static_cast<std::size_t>(other)].sockets.size(),
                    other == world.rank ? 0u : 1u);
        }
      },
      testing::kPatience, impossible_memory);
}

TEST(Sharing, ThatTheTransportDoesNotNeedIsNoObstacle) {
  std::vector<Options> options = testing::world_of(2);
  options[0].transport = "tcp";
  testing::join_all(options, [](World& world) { EXPECT_EQ(world.unshared, ""); });
}

TEST(Sharing, ThatIsRequiredAndImpossibleIsAnErrorWithTheReason) {
  std::vector<Options> options = testing::world_of(2);
  for (Options& one : options) one.transport = "shm";
  testing::on_threads(2, [&](int rank) {
    const auto world = join(options[static_cast<std::size_t>(rank)], impossible_memory);
    ASSERT_FALSE(world);
    EXPECT_EQ(world.error().code, ErrorCode::kConfiguration);
    EXPECT_EQ(
        world.error().message,
        "rank 0 on host host-0 cannot share memory: cannot map shared memory: Cannot allocate "
        "memory");
    EXPECT_EQ(world.error().rank, 0);
  });
}

// One of two ranks can map nothing: the other rank must not use the memory alone.
TEST(Sharing, IsForAllRanksOfAHostOrForNone) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "sanitizers do not work with limited address space";
#endif
  std::vector<Options> options = testing::world_of(2);
  const ::pid_t child = ::fork();
  if (child == 0) {
    ::close(options[0].listener);
    // No room for another mapping of 64 MiB and more.
    const rlimit limit = {std::uint64_t{64} << 20, std::uint64_t{64} << 20};
    ::setrlimit(RLIMIT_AS, &limit);
    const auto world = join(options[1], ample_memory);
    ::_exit(world && !(*world)->memory && !(*world)->streams[0].sockets.empty() ? 0 : 1);
  }
  const auto world = join(options[0], ample_memory);
  ASSERT_TRUE(world) << world.error().to_string();
  EXPECT_FALSE((*world)->memory);
  EXPECT_FALSE((*world)->topology.is_one_shared_host());
  EXPECT_EQ((*world)->streams[1].sockets.size(), 1u);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Sharing, BeyondTheLimitOfFileSizesIsAnErrorAndNoSignal) {
  rlimit before = {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit low = {std::uint64_t{1} << 20, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &low);
  testing::spawn_worlds(2, Placement::one_host(), [](World& world) { EXPECT_FALSE(world.memory); });
  ::setrlimit(RLIMIT_FSIZE, &before);
}

}  // namespace
}  // namespace muster::collective
