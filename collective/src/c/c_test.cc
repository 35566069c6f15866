// The C interface from C++: its errors, and what it makes of options of other sizes.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <thread>

#include "muster/collective.h"

namespace muster::collective {
namespace {

muster_comm* world_of_one() {
  muster_options options = MUSTER_OPTIONS_INIT;
  options.rank = 0;
  options.size = 1;
  muster_comm* world = nullptr;
  EXPECT_EQ(muster_connect(&options, &world), MUSTER_OK) << muster_last_error();
  return world;
}

TEST(CInterface, TheLastErrorBelongsToItsThread) {
  muster_comm* const world = world_of_one();
  EXPECT_EQ(muster_broadcast(world, nullptr, 0, 3), MUSTER_BAD_ARGUMENT);
  const std::string mine = muster_last_error();
  EXPECT_NE(mine, "");
  std::thread([&] {
    EXPECT_STREQ(muster_last_error(), "");
    EXPECT_EQ(muster_last_error_code(), MUSTER_OK);
    EXPECT_EQ(muster_barrier(nullptr), MUSTER_BAD_ARGUMENT);
    EXPECT_STREQ(muster_last_error(), "the communicator is null");
  }).join();
  EXPECT_EQ(muster_last_error(), mine);
  muster_disconnect(world);
}

TEST(CInterface, ASuccessLeavesTheLastErrorAsItWas) {
  muster_comm* const world = world_of_one();
  EXPECT_EQ(muster_broadcast(world, nullptr, 0, 3), MUSTER_BAD_ARGUMENT);
  EXPECT_EQ(muster_barrier(world), MUSTER_OK);
  EXPECT_EQ(muster_last_error_code(), MUSTER_BAD_ARGUMENT);
  muster_disconnect(world);
}

TEST(CInterface, OptionsOfAnOlderLibraryAreRead) {
  muster_options options = MUSTER_OPTIONS_INIT;
  options.rank = 0;
  options.size = 1;
  options.host = "not read any more";
  options.struct_size = offsetof(muster_options, host);
  muster_comm* world = nullptr;
  ASSERT_EQ(muster_connect(&options, &world), MUSTER_OK) << muster_last_error();
  EXPECT_STRNE(muster_host(world), "not read any more");
  muster_disconnect(world);
}

TEST(CInterface, OptionsOfANewerLibraryAreReadAsFarAsTheyAreKnown) {
  struct Newer {
    muster_options known = MUSTER_OPTIONS_INIT;
    int unknown = 42;
  } newer;
  newer.known.struct_size = sizeof(newer);
  newer.known.rank = 0;
  newer.known.size = 1;
  newer.known.host = "here";
  muster_comm* world = nullptr;
  ASSERT_EQ(muster_connect(&newer.known, &world), MUSTER_OK) << muster_last_error();
  EXPECT_STREQ(muster_host(world), "here");
  muster_disconnect(world);
}

// Rank 0 waits at its door, rank 1 looks for one: neither for as long as the timeout says.
TEST(CInterface, AWaitForTheOthersCanBeCancelled) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  for (const int rank : {0, 1}) {
    muster_options options = MUSTER_OPTIONS_INIT;
    options.rank = rank;
    options.size = 2;
    options.rendezvous = "127.0.0.1:1";
    options.key = "00112233445566778899aabbccddeeff";
    options.listener = rank == 0 ? listener : -1;
    options.timeout_ms = 600'000;
    options.cancel = ends[0];
    muster_comm* world = nullptr;
    EXPECT_EQ(muster_connect(&options, &world), MUSTER_PEER_LOST) << muster_last_error();
    EXPECT_EQ(world, nullptr);
  }
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(CInterface, OptionsWithoutASizeAreRefused) {
  muster_options options = {};
  muster_comm* world = nullptr;
  EXPECT_EQ(muster_connect(&options, &world), MUSTER_BAD_ARGUMENT);
  EXPECT_NE(std::string(muster_last_error()).find("MUSTER_OPTIONS_INIT"), std::string::npos);
  EXPECT_EQ(world, nullptr);
}

TEST(CInterface, WhatIsNullIsNamed) {
  muster_comm* const world = world_of_one();
  float value = 1;
  EXPECT_EQ(muster_connect(nullptr, nullptr), MUSTER_BAD_ARGUMENT);
  EXPECT_STREQ(muster_last_error(), "the place for the communicator is null");
  EXPECT_EQ(muster_all_gather_unequal(world, &value, &value, nullptr), MUSTER_BAD_ARGUMENT);
  EXPECT_STREQ(muster_last_error(), "the list of lengths is null");
  EXPECT_EQ(muster_group(world, nullptr, 1, nullptr), MUSTER_BAD_ARGUMENT);
  EXPECT_STREQ(muster_last_error(), "the list of ranks is null");
  EXPECT_EQ(muster_session_wait(nullptr, 1), MUSTER_BAD_ARGUMENT);
  EXPECT_STREQ(muster_last_error(), "the session is null");
  EXPECT_EQ(muster_rank(nullptr), -1);
  EXPECT_EQ(muster_session_size(nullptr), -1);
  EXPECT_EQ(muster_session_done(nullptr, 1), 0);
  EXPECT_EQ(muster_allocate_shared(nullptr, 1), nullptr);
  muster_disconnect(world);
  muster_disconnect(nullptr);
  muster_session_end(nullptr);
}

TEST(CInterface, AWorldOfOneIsItsOwnSum) {
  muster_comm* const world = world_of_one();
  float values[] = {1, 2, 3};
  EXPECT_EQ(muster_all_reduce(world, values, values, 3, MUSTER_FLOAT32, MUSTER_AVERAGE, 2, 1),
            MUSTER_OK)
      << muster_last_error();
  EXPECT_EQ(values[2], 6);
  muster_disconnect(world);
}

}  // namespace
}  // namespace muster::collective
