// How worlds gather, and how they fail to.
#include <gtest/gtest.h>
#include <muster/collective/testing/spawn_ranks.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

#include "muster/collective/communicator.h"
#include "transport/socket.h"

namespace muster::collective {
namespace {

using std::chrono::milliseconds;
using testing::on_threads;
using testing::world_of;

Deadline soon() {
  return Clock::now() + std::chrono::seconds(20);
}

// Connects one rank for each of `world` and returns what each got: an empty text, or its error.
std::vector<std::string> outcomes(const std::vector<Options>& world) {
  std::vector<std::string> errors(world.size());
  on_threads(static_cast<int>(world.size()), [&](int i) {
    const auto index = static_cast<std::size_t>(i);
    const Result<Communicator> communicator = Communicator::connect(world[index]);
    if (!communicator) errors[index] = communicator.error().message;
  });
  return errors;
}

TEST(Join, GathersWhoeverComesFirst) {
  std::vector<Options> world = world_of(3);
  std::atomic<int> met = 0;
  const auto join = [&](std::size_t rank) {
    Result<Communicator> communicator = Communicator::connect(world[rank]);
    ASSERT_TRUE(communicator) << communicator.error().to_string();
    ++met;
    EXPECT_TRUE(communicator->barrier());
  };
  {
    // Without its listener rank 0 opens the port itself, while the others are trying already.
    Descriptor(world[0].listener).close();
    world[0].listener = -1;
    std::jthread two([&] { join(2); });
    std::jthread one([&] { join(1); });
    std::jthread zero([&] { join(0); });
  }
  EXPECT_EQ(met, 3);
}

TEST(Join, AWorldOfOneOpensNoSocket) {
  const auto communicator = Communicator::connect({.rank = 0, .size = 1});
  ASSERT_TRUE(communicator);
  EXPECT_EQ(communicator->size(), 1);
}

TEST(Join, LeavesNoPortOpen) {
  const std::vector<Options> world = world_of(2);
  const Address rendezvous = resolve(world[0].rendezvous)->front();
  on_threads(2, [&](int rank) {
    Result<Communicator> communicator =
        Communicator::connect(world[static_cast<std::size_t>(rank)]);
    ASSERT_TRUE(communicator) << communicator.error().to_string();
    EXPECT_FALSE(connect_to(rendezvous, soon()));
    EXPECT_TRUE(communicator->barrier());
  });
}

TEST(Join, MeetsByAPrivateFileThatIsGoneAfterwards) {
  std::string pattern = (std::filesystem::temp_directory_path() / "join-test-XXXXXX").string();
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  const std::string& root = pattern;
  on_threads(3, [&](int rank) {
    // Twice: the second world must not stumble over what the first leaves behind.
    for (int world = 0; world < 2; ++world) {
      Result<Communicator> communicator = Communicator::connect(
          {.rank = rank, .size = 3, .rendezvous_file = root + "/private/world"});
      ASSERT_TRUE(communicator) << communicator.error().to_string();
      ASSERT_TRUE(communicator->barrier());
    }
  });
  EXPECT_TRUE(std::filesystem::is_empty(root + "/private"));
  std::filesystem::remove_all(root);
}

TEST(Join, GoesOnWhenStrangersComeToTheRendezvous) {
  const std::vector<Options> world = world_of(2);
  const Address rendezvous = resolve(world[0].rendezvous)->front();
  const Result<Descriptor> silent = connect_to(rendezvous, soon());
  const Result<Descriptor> scanner = connect_to(rendezvous, soon());
  ASSERT_TRUE(send_all(*scanner, view_of(std::string(5000, '\xff')), soon()));

  EXPECT_EQ(outcomes(world), (std::vector<std::string>{"", ""}));
}

TEST(Join, NamesBothSidesOfADifferenceInSize) {
  std::vector<Options> world = world_of(2);
  world[1].size = 3;
  const std::string expected =
      "rank 1 on host host-1 belongs to a world of 3 ranks, but rank 0 on host host-0 to one of 2";
  EXPECT_EQ(outcomes(world), (std::vector<std::string>{expected, expected}));
}

TEST(Join, TellsEveryoneAboutARankThatCameTwice) {
  std::vector<Options> world = world_of(3);
  world[2].rank = 1;
  for (const std::string& error : outcomes(world)) {
    EXPECT_TRUE(error.starts_with("rank 1 came twice: from host host-")) << error;
    EXPECT_NE(error.find("host-1 (127.0.0.1:"), std::string::npos) << error;
    EXPECT_NE(error.find("host-2 (127.0.0.1:"), std::string::npos) << error;
  }
}

TEST(Join, NamesBothSidesOfADifferenceInKeys) {
  std::vector<Options> world = world_of(2, milliseconds(1000));
  world[1].key = "ffffffffffffffffffffffffffffffff";

  const std::vector<std::string> errors = outcomes(world);

  EXPECT_EQ(errors[1], "rank 1 on host host-1 cannot join rank 0 at " + world[0].rendezvous +
                           ": the two hold different keys");
  EXPECT_TRUE(
      errors[0].starts_with("rank 1 of 2 did not come to rank 0 on host host-0 within "
                            "1 s; 1 other connection was dropped, from 127.0.0.1:"))
      << errors[0];
}

TEST(Join, NamesTheRanksThatDidNotCome) {
  std::vector<Options> world = world_of(4, milliseconds(1000));
  world.resize(2);
  const std::string expected = "ranks 2, 3 of 4 did not come to rank 0 on host host-0 within 1 s";

  const std::vector<std::string> errors = outcomes(world);

  EXPECT_EQ(errors[0], expected);
  // Its own patience may end a moment before rank 0 tells it.
  EXPECT_TRUE(errors[1] == expected || errors[1].starts_with("rank 0 still waited")) << errors[1];
}

TEST(Join, SaysWhereItLookedForRank0) {
  std::vector<Options> world = world_of(2, milliseconds(100));
  Descriptor(world[0].listener).close();
  const auto communicator = Communicator::connect(world[1]);
  ASSERT_FALSE(communicator);
  EXPECT_EQ(communicator.error().message,
            "rank 1 on host host-1 did not reach rank 0 within 0.1 s: cannot connect to " +
                world[1].rendezvous + ": Connection refused");
}

TEST(Join, ListensOnNoWildcard) {
  Options options = world_of(2)[0];
  Descriptor(options.listener).close();
  options.listener = -1;
  options.rendezvous = "0.0.0.0:4000";
  const auto communicator = Communicator::connect(options);
  ASSERT_FALSE(communicator);
  EXPECT_EQ(communicator.error().message, "nobody can reach the rendezvous '0.0.0.0:4000'");
}

}  // namespace
}  // namespace muster::collective
