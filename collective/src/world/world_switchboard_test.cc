#include "world/world_switchboard.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bootstrap/test_values.h"
#include "transport/socket.h"
#include "transport/test_deadline.h"

namespace muster::collective {
namespace {

using testing::kTestKey;
using testing::soon;

// The switchboards of some ranks on as many hosts, which the test serves in place of the monitors.
class SwitchboardTest : public ::testing::Test {
 protected:
  // The listeners of the ranks before `first` belong to the test; these ranks have no switchboard.
  void open(int size, int streams, int first = 0) {
    std::vector<Member> members;
    for (int rank = 0; rank < size; ++rank) {
      listeners_.push_back(*listen_on(resolve("127.0.0.1:0")->front()));
      members.push_back({.host = "n" + std::to_string(rank),
                         .endpoint = local_address(listeners_.back().get()).to_string(),
                         .host_id = std::to_string(rank)});
    }
    boards_.resize(members.size());
    for (int rank = first; rank < size; ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      std::vector<Descriptor> door;
      door.push_back(std::move(listeners_[index]));
      const RankIdentity self{.rank = rank,
                              .size = size,
                              .host = members[index].host,
                              .endpoint = members[index].endpoint,
                              .host_id = members[index].host_id};
      boards_[index] = std::make_unique<WorldSwitchboard>(
          self, members, kTestKey,
          Acceptor(std::move(door), kTestKey, static_cast<std::size_t>(size)), streams);
    }
  }

  // Serves the connections of the ranks from `begin` to `end` once, after an event.
  void serve(std::size_t begin, std::size_t end, Deadline limit) {
    std::vector<pollfd> entries;
    std::vector<std::size_t> ends;
    Deadline wake = limit;
    for (std::size_t i = begin; i < end; ++i) {
      if (boards_[i]) boards_[i]->prepare(entries, wake);
      ends.push_back(entries.size());
    }
    ::poll(entries.data(), entries.size(), milliseconds_left(wake));
    std::size_t at = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t next = ends[i - begin];
      if (boards_[i]) {
        const Status served = boards_[i]->attend(std::span(entries).subspan(at, next - at));
        ASSERT_TRUE(served) << served.error().to_string();
      }
      at = next;
    }
  }

  // Serves the connections of all ranks until `done`, which must become true.
  void serve_until(const std::function<bool()>& done) {
    const Deadline limit = soon();
    while (!done()) {
      ASSERT_LT(Clock::now(), limit);
      serve(0, boards_.size(), limit);
    }
  }

  std::size_t entries_of(std::size_t rank) {
    std::vector<pollfd> entries;
    Deadline wake = soon();
    boards_[rank]->prepare(entries, wake);
    return entries.size();
  }

  static bool has_arrivals(const WorldSwitchboard& board) {
    pollfd entry = {board.arrival_descriptor(), POLLIN, 0};
    return ::poll(&entry, 1, 0) == 1;
  }

  std::vector<Descriptor> listeners_;
  std::vector<std::unique_ptr<WorldSwitchboard>> boards_;
};

// As a call with two peers does, one of which is faster.
TEST_F(SwitchboardTest, KeepsAnArrivalWhileTheStreamsOfAnotherRankAreAwaited) {
  open(3, 1);
  WorldSwitchboard& board = *boards_[0];
  Streams streams;
  board.forget_arrivals();
  EXPECT_EQ(*board.take_streams(1, streams), false);
  boards_[1]->request_streams(0);
  serve_until([&] { return has_arrivals(board); });

  EXPECT_EQ(*board.take_streams(2, streams), false);
  EXPECT_TRUE(has_arrivals(board)) << "the connection to rank 1 has not been taken yet";

  board.forget_arrivals();
  EXPECT_FALSE(has_arrivals(board));
  EXPECT_EQ(*board.take_streams(1, streams), true);
  EXPECT_EQ(streams.sockets.size(), 1u);
}

// As in the first all_to_all of a large world: every rank opens all its connections to rank 0 at once,
// faster than rank 0 serves them.
TEST_F(SwitchboardTest, AcceptsAllConnectionsOfALargeWorldAtOnce) {
  constexpr std::size_t kBoards = 20;
  constexpr std::size_t kStreams = 8;
  open(kBoards, kStreams);
  const std::size_t others = entries_of(0);
  for (std::size_t rank = 1; rank < kBoards; ++rank) boards_[rank]->request_streams(0);
  for (int round = 0; round < 2; ++round) serve(1, kBoards, Clock::now());

  const Deadline limit = soon();
  while (entries_of(0) < others + (kBoards - 1) * kStreams) {
    ASSERT_LT(Clock::now(), limit) << "rank 0 has dropped connections of other ranks";
    serve(0, 1, Clock::now() + std::chrono::milliseconds(10));
  }

  for (std::size_t rank = 1; rank < kBoards; ++rank) {
    Streams theirs;
    Streams ours;
    serve_until([&] { return *boards_[rank]->take_streams(0, theirs); });
    serve_until([&] { return *boards_[0]->take_streams(static_cast<int>(rank), ours); });
    EXPECT_EQ(theirs.sockets.size(), kStreams);
    EXPECT_EQ(ours.sockets.size(), kStreams);
  }
}

TEST_F(SwitchboardTest, ConnectsAgainIfTheConnectionIsClosedButNotIfItIsRefused) {
  open(2, 1, 1);
  Descriptor& listener = listeners_[0];
  WorldSwitchboard& board = *boards_[1];
  board.request_streams(0);
  Descriptor caller;
  const auto is_called = [&] {
    caller = std::move(accept_from(listener)->socket);
    return static_cast<bool>(caller);
  };
  for (int attempt = 0; attempt < 3; ++attempt) {
    serve_until(is_called);
    caller.close();
  }
  EXPECT_FALSE(has_arrivals(board));
  listener.close();

  serve_until([&] { return has_arrivals(board); });

  Streams streams;
  const auto taken = board.take_streams(0, streams);
  ASSERT_FALSE(taken);
  EXPECT_TRUE(taken.error().message.ends_with("Connection refused")) << taken.error().message;
}

TEST_F(SwitchboardTest, WaitsWhileTheProcessHasNoFreeDescriptor) {
  open(2, 1);
  boards_[1]->request_streams(0);
  for (int round = 0; round < 2; ++round) serve(1, 2, Clock::now());
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const Descriptor next(::fcntl(boards_[0]->arrival_descriptor(), F_DUPFD_CLOEXEC, 0));
  rlimit low = before;
  low.rlim_cur = static_cast<rlim_t>(next.get()) + 1;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);

  serve(0, 1, soon());
  const Deadline limit = soon();
  Deadline wake = limit;
  std::vector<pollfd> entries;
  boards_[0]->prepare(entries, wake);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);

  EXPECT_LT(wake, limit);
  EXPECT_TRUE(std::ranges::count(entries, -1, &pollfd::fd) == 1) << "the listener pauses";
  serve_until([&] { return has_arrivals(*boards_[0]); });
}

}  // namespace
}  // namespace muster::collective
