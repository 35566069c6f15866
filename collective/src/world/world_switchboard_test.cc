#include "world/world_switchboard.h"

#include <gtest/gtest.h>
#include <poll.h>

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

// The switchboards of three ranks on three hosts, which the test serves in place of the monitors.
class SwitchboardTest : public ::testing::Test {
 protected:
  static constexpr int kSize = 3;

  SwitchboardTest() {
    std::vector<Descriptor> listeners;
    std::vector<Member> members;
    for (int rank = 0; rank < kSize; ++rank) {
      listeners.push_back(*listen_on(resolve("127.0.0.1:0")->front()));
      members.push_back({.host = "n" + std::to_string(rank),
                         .endpoint = local_address(listeners.back().get()).to_string(),
                         .host_id = std::to_string(rank)});
    }
    for (int rank = 0; rank < kSize; ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      std::vector<Descriptor> door;
      door.push_back(std::move(listeners[index]));
      const RankIdentity self{.rank = rank,
                              .size = kSize,
                              .host = members[index].host,
                              .endpoint = members[index].endpoint,
                              .host_id = members[index].host_id};
      boards_.push_back(std::make_unique<WorldSwitchboard>(
          self, members, kTestKey, Acceptor(std::move(door), kTestKey, kSize), 1));
    }
  }

  // Serves the connections of all ranks until `done`, which must become true.
  void serve_until(const std::function<bool()>& done) {
    const Deadline limit = soon();
    while (!done()) {
      ASSERT_LT(Clock::now(), limit);
      std::vector<pollfd> entries;
      std::vector<std::size_t> ends;
      Deadline wake = limit;
      for (const auto& board : boards_) {
        board->prepare(entries, wake);
        ends.push_back(entries.size());
      }
      ::poll(entries.data(), entries.size(), milliseconds_left(wake));
      std::size_t begin = 0;
      for (std::size_t i = 0; i < boards_.size(); ++i) {
        const Status served =
            boards_[i]->attend(std::span(entries).subspan(begin, ends[i] - begin));
        ASSERT_TRUE(served) << served.error().to_string();
        begin = ends[i];
      }
    }
  }

  static bool has_arrivals(const WorldSwitchboard& board) {
    pollfd entry = {board.arrival_descriptor(), POLLIN, 0};
    return ::poll(&entry, 1, 0) == 1;
  }

  std::vector<std::unique_ptr<WorldSwitchboard>> boards_;
};

// As a call with two peers does, one of which is faster.
TEST_F(SwitchboardTest, KeepsAnArrivalWhileTheStreamsOfAnotherRankAreAwaited) {
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

}  // namespace
}  // namespace muster::collective
