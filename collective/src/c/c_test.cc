// The C interface from C++: its errors, and options of older and newer libraries.
#include <gtest/gtest.h>
#include <muster/collective/testing/options.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <barrier>
#include <cstdlib>
#include <cstring>
#include <functional>
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
  EXPECT_EQ(muster_group(world, nullptr, 0, nullptr), MUSTER_BAD_ARGUMENT);
  const std::string mine = muster_last_error();
  EXPECT_NE(mine, "");
  std::thread([&] {
    EXPECT_STREQ(muster_last_error(), "");
    EXPECT_EQ(muster_last_error_code(), MUSTER_OK);
    EXPECT_EQ(muster_group(nullptr, nullptr, 0, nullptr), MUSTER_BAD_ARGUMENT);
    EXPECT_STREQ(muster_last_error(), "the communicator is null");
  }).join();
  EXPECT_EQ(muster_last_error(), mine);
  muster_disconnect(world);
}

TEST(CInterface, ASuccessKeepsTheLastError) {
  EXPECT_EQ(muster_connect(nullptr, nullptr), MUSTER_BAD_ARGUMENT);
  muster_disconnect(world_of_one());
  EXPECT_EQ(muster_last_error_code(), MUSTER_BAD_ARGUMENT);
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

TEST(CInterface, UnknownOptionsOfANewerLibraryAreIgnored) {
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

// Rank 0 waits at its listener and rank 1 looks for rank 0; both waits end before the timeout.
TEST(CInterface, ConnectingCanBeCancelled) {
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

TEST(CInterface, OptionsWithoutASizeAreRejected) {
  muster_options options = {};
  muster_comm* world = nullptr;
  EXPECT_EQ(muster_connect(&options, &world), MUSTER_BAD_ARGUMENT);
  EXPECT_NE(std::string(muster_last_error()).find("MUSTER_OPTIONS_INIT"), std::string::npos);
  EXPECT_EQ(world, nullptr);
}

TEST(CInterface, ANullArgumentIsNamed) {
  muster_comm* const world = world_of_one();
  EXPECT_EQ(muster_connect(nullptr, nullptr), MUSTER_BAD_ARGUMENT);
  EXPECT_STREQ(muster_last_error(), "the output for the communicator is null");
  EXPECT_EQ(muster_group(world, nullptr, 1, nullptr), MUSTER_BAD_ARGUMENT);
  EXPECT_STREQ(muster_last_error(), "the list of ranks is null");
  EXPECT_EQ(muster_session_wait_for(nullptr, 1, -1, nullptr), MUSTER_BAD_ARGUMENT);
  EXPECT_STREQ(muster_last_error(), "the session is null");
  EXPECT_EQ(muster_rank(nullptr), -1);
  EXPECT_EQ(muster_session_size(nullptr), -1);
  EXPECT_EQ(muster_session_done(nullptr, 1), 0);
  EXPECT_EQ(muster_session_allocate_shared(nullptr, 1), nullptr);
  muster_disconnect(world);
  muster_disconnect(nullptr);
  muster_session_end(nullptr);
}

// Two ranks that are threads of this process, each with a session.
void on_two_ranks(const std::function<void(muster_session*, int rank)>& body) {
  std::string folder = ::testing::TempDir() + "c-interface-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string file = folder + "/meet";
  testing::on_threads(2, [&](int rank) {
    muster_options options = MUSTER_OPTIONS_INIT;
    options.rank = rank;
    options.size = 2;
    options.rendezvous_file = file.c_str();
    options.host = "here";
    muster_comm* world = nullptr;
    ASSERT_EQ(muster_connect(&options, &world), MUSTER_OK) << muster_last_error();
    muster_session* session = nullptr;
    ASSERT_EQ(muster_session_start(world, nullptr, &session), MUSTER_OK) << muster_last_error();
    body(session, rank);
    muster_session_end(session);
  });
  EXPECT_EQ(::rmdir(folder.c_str()), 0);
}

muster_operation barrier_of(const char* name) {
  muster_operation barrier = MUSTER_OPERATION_INIT;
  barrier.kind = MUSTER_OPERATION_BARRIER;
  barrier.name = name;
  return barrier;
}

TEST(CInterface, EndingASessionEndsTheCallsOfOtherThreads) {
  for (int round = 0; round < 20; ++round) {
    on_two_ranks([](muster_session* session, int rank) {
      if (rank == 1) {
        const muster_operation mine = barrier_of("of rank 1");
        EXPECT_EQ(muster_session_run(session, &mine, -1, nullptr, nullptr), MUSTER_PEER_LOST);
        return;
      }
      std::barrier<> begun(5);
      testing::on_threads(5, [&](int thread) {
        if (thread == 0) {
          begun.arrive_and_wait();
          muster_session_end(session);
          return;
        }
        const std::string name = "of thread " + std::to_string(thread);
        const muster_operation mine = barrier_of(name.c_str());
        muster_ticket ticket = 0;
        ASSERT_EQ(muster_session_begin(session, &mine, &ticket), MUSTER_OK);
        begun.arrive_and_wait();
        int code = MUSTER_PENDING;
        if (thread == 1) code = muster_session_wait_for(session, ticket, -1, nullptr);
        if (thread == 2) code = muster_session_wait_for(session, ticket, 600'000, nullptr);
        while (thread == 3 && code == MUSTER_PENDING) {
          code = muster_session_wait_for(session, ticket, 1, nullptr);
        }
        const muster_operation more = barrier_of("more");
        if (thread == 4) code = muster_session_run(session, &more, -1, nullptr, nullptr);
        // A call before the end fails with the first code, a later call with the second.
        EXPECT_TRUE(code == MUSTER_PEER_LOST || code == MUSTER_BAD_ARGUMENT) << code;
        EXPECT_EQ(muster_session_done(session, ticket), 0);
      });
    });
  }
}

TEST(CInterface, AnUntakenResultIsFreed) {
  on_two_ranks([](muster_session* session, int) {
    muster_tensor part{"ab", nullptr, 2};
    muster_operation gather = MUSTER_OPERATION_INIT;
    gather.kind = MUSTER_OPERATION_ALL_GATHER;
    gather.name = "g";
    gather.tensors = &part;
    gather.tensor_count = 1;
    muster_ticket ticket = 0;
    ASSERT_EQ(muster_session_begin(session, &gather, &ticket), MUSTER_OK) << muster_last_error();
    EXPECT_EQ(muster_session_wait_for(session, ticket, -1, nullptr), MUSTER_OK);
    ASSERT_EQ(muster_session_begin(session, &gather, &ticket), MUSTER_OK) << muster_last_error();
    const muster_operation last = barrier_of("last");
    EXPECT_EQ(muster_session_run(session, &last, -1, nullptr, nullptr), MUSTER_OK);
  });
}

TEST(CInterface, AResultOutlivesItsSession) {
  on_two_ranks([](muster_session* session, int rank) {
    const std::string mine(static_cast<std::size_t>(1000 * (rank + 1)),
                           static_cast<char>('a' + rank));
    muster_tensor part{mine.data(), nullptr, mine.size()};
    muster_operation gather = MUSTER_OPERATION_INIT;
    gather.kind = MUSTER_OPERATION_ALL_GATHER;
    gather.name = "g";
    gather.tensors = &part;
    gather.tensor_count = 1;
    muster_result* result = nullptr;
    ASSERT_EQ(muster_session_run(session, &gather, -1, nullptr, &result), MUSTER_OK)
        << muster_last_error();
    muster_session_end(session);
    ASSERT_EQ(muster_result_bytes(result, 1), 2000u);
    EXPECT_EQ(std::string(static_cast<const char*>(muster_result_data(result)), 3000),
              std::string(1000, 'a') + std::string(2000, 'b'));
    muster_result_free(result);
  });
}

muster_operation with(int kind, const char* name, const muster_tensor& tensor) {
  muster_operation operation = MUSTER_OPERATION_INIT;
  operation.kind = kind;
  operation.name = name;
  operation.tensors = &tensor;
  operation.tensor_count = 1;
  return operation;
}

TEST(CInterface, GatherAndScatterFillBuffersOfTheCaller) {
  on_two_ranks([](muster_session* session, int rank) {
    const std::array<char, 2> mine = {static_cast<char>('a' + rank), '.'};
    const std::array<std::uint64_t, 2> counts = {2, 2};
    std::array<char, 4> all = {};
    const muster_tensor part{mine.data(), rank == 1 ? all.data() : nullptr, mine.size()};
    muster_operation gather = with(MUSTER_OPERATION_GATHER, "g", part);
    gather.root = 1;
    gather.counts = rank == 1 ? counts.data() : nullptr;
    ASSERT_EQ(muster_session_run(session, &gather, -1, nullptr, nullptr), MUSTER_OK)
        << muster_last_error();
    EXPECT_EQ(std::string(all.data(), 4), rank == 1 ? std::string("a.b.") : std::string(4, '\0'));

    std::array<char, 2> received = {};
    const muster_tensor place{rank == 1 ? all.data() : nullptr, received.data(), received.size()};
    muster_operation scatter = with(MUSTER_OPERATION_SCATTER, "s", place);
    scatter.root = 1;
    scatter.counts = rank == 1 ? counts.data() : nullptr;
    ASSERT_EQ(muster_session_run(session, &scatter, -1, nullptr, nullptr), MUSTER_OK)
        << muster_last_error();
    EXPECT_EQ(received, mine);

    // A root without counts is refused on that rank, before anything is sent.
    scatter.counts = nullptr;
    if (rank == 1) {
      EXPECT_EQ(muster_session_run(session, &scatter, -1, nullptr, nullptr), MUSTER_BAD_ARGUMENT);
    }
  });
}

TEST(CInterface, AllToAllHasLengthsForEachDirection) {
  on_two_ranks([](muster_session* session, int rank) {
    // Rank 0 sends 1 and 3 bytes, rank 1 sends 2 and 1.
    const std::array<std::uint64_t, 2> sent =
        rank == 0 ? std::array<std::uint64_t, 2>{1, 3} : std::array<std::uint64_t, 2>{2, 1};
    const std::array<std::uint64_t, 2> received =
        rank == 0 ? std::array<std::uint64_t, 2>{1, 2} : std::array<std::uint64_t, 2>{3, 1};
    const std::string in(sent[0] + sent[1], static_cast<char>('a' + rank));
    std::string out(received[0] + received[1], ' ');
    const muster_tensor tensor{in.data(), out.data(), in.size()};
    muster_operation swap = with(MUSTER_OPERATION_ALL_TO_ALL, "swap", tensor);
    swap.counts = sent.data();
    swap.received = received.data();
    ASSERT_EQ(muster_session_run(session, &swap, -1, nullptr, nullptr), MUSTER_OK)
        << muster_last_error();
    EXPECT_EQ(out, std::string(received[0], 'a') + std::string(received[1], 'b'));
  });
}

TEST(CInterface, AQueueReturnsOperationsWhenTheyEnd) {
  on_two_ranks([](muster_session* session, int rank) {
    muster_queue* const queue = muster_queue_new();
    int sender = -1;
    std::array<char, 3> bytes = {'x', 'y', 'z'};
    const muster_tensor tensor{bytes.data(), bytes.data(), bytes.size()};
    muster_operation message =
        with(rank == 0 ? MUSTER_OPERATION_SEND : MUSTER_OPERATION_RECEIVE, nullptr, tensor);
    message.root = rank == 0 ? 1 : MUSTER_ANY_RANK;
    message.tag = 8;
    message.sender = &sender;
    muster_ticket ticket = 0;
    std::uint64_t user = 0;
    EXPECT_EQ(muster_queue_next(queue, 0, &user), MUSTER_PENDING);
    ASSERT_EQ(muster_session_begin(session, &message, &ticket), MUSTER_OK) << muster_last_error();
    ASSERT_EQ(muster_session_watch(session, ticket, queue, 5), MUSTER_OK);
    EXPECT_EQ(muster_queue_next(queue, -1, &user), MUSTER_OK);
    EXPECT_EQ(user, 5u);
    EXPECT_EQ(sender, rank == 1 ? 0 : -1);

    // A failure has its message on the thread that reads the queue.
    message = with(MUSTER_OPERATION_RECEIVE, nullptr, tensor);
    message.root = 1 - rank;
    message.tag = 9;
    ASSERT_EQ(muster_session_begin(session, &message, &ticket), MUSTER_OK);
    ASSERT_EQ(muster_session_watch(session, ticket, queue, 6), MUSTER_OK);
    muster_session_end(session);
    EXPECT_EQ(muster_queue_next(queue, -1, &user), MUSTER_PEER_LOST);
    EXPECT_EQ(user, 6u);
    EXPECT_NE(std::string(muster_last_error()), "");
    muster_queue_end(queue);
    EXPECT_EQ(muster_queue_next(queue, -1, &user), MUSTER_OK);
    EXPECT_EQ(user, 0u);
  });
}

TEST(CInterface, AWorldOfOneIsItsOwnSum) {
  muster_session* session = nullptr;
  ASSERT_EQ(muster_session_start(world_of_one(), nullptr, &session), MUSTER_OK);
  std::array<float, 3> values = {1, 2, 3};
  muster_tensor tensor{values.data(), values.data(), values.size()};
  muster_operation average = MUSTER_OPERATION_INIT;
  average.kind = MUSTER_OPERATION_ALL_REDUCE;
  average.type = MUSTER_FLOAT32;
  average.op = MUSTER_AVERAGE;
  average.prescale = 2;
  average.name = "values";
  average.tensors = &tensor;
  average.tensor_count = 1;
  EXPECT_EQ(muster_session_run(session, &average, -1, nullptr, nullptr), MUSTER_OK)
      << muster_last_error();
  EXPECT_EQ(values[2], 6);
  muster_session_end(session);
}

}  // namespace
}  // namespace muster::collective
