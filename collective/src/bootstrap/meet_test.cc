#include "bootstrap/meet.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <thread>

#include "bootstrap/test_values.h"
#include "transport/socket.h"
#include "transport/test_deadline.h"

namespace muster::collective {
namespace {

using testing::kTestKey;
using testing::soon;

// Three ranks that have already met.
class StarTest : public ::testing::Test {
 protected:
  StarTest() {
    std::vector<AcceptedPeer> peers;
    for (int rank = 1; rank < 3; ++rank) {
      std::array<int, 2> fds = {};
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds.data()), 0);
      const Handshake handshake{kTestKey, Purpose::kRendezvous, {}, {}};
      const RankIdentity who{.rank = rank, .size = 3, .host = "n" + std::to_string(rank)};
      peers.push_back({Descriptor(fds[0]), handshake, who});
      stars_[static_cast<std::size_t>(rank)].emplace(who, Descriptor(fds[1]), handshake, "n0");
    }
    stars_[0].emplace(RankIdentity{.rank = 0, .size = 3, .host = "n0"}, std::move(peers));
  }

  std::array<std::optional<Star>, 3> stars_;
};

TEST_F(StarTest, GivesEveryRankTheBytesOfAllRanks) {
  std::vector<std::jthread> ranks;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&, rank] {
      for (int round = 0; round < 3; ++round) {
        const std::string mine = std::string(rank, 'x') + std::to_string(round);
        const auto all = stars_[rank]->exchange(view_of(mine), soon());
        ASSERT_TRUE(all) << all.error().to_string();
        ASSERT_EQ(all->size(), 3u);
        const std::string last = "xx" + std::to_string(round);
        EXPECT_TRUE(std::ranges::equal((*all)[2], view_of(last)));
      }
    });
  }
}

TEST_F(StarTest, SendsTheReasonOfAFailureToAllRanks) {
  static_cast<void>(stars_[2]->fail({ErrorCode::kSystem, "no more descriptors", {}, 2, "n2"}));
  const auto host = stars_[0]->exchange({}, soon());
  ASSERT_FALSE(host);
  static_cast<void>(stars_[0]->fail(host.error()));
  const auto peer = stars_[1]->exchange({}, soon());
  ASSERT_FALSE(peer);
  EXPECT_EQ(peer.error().message, "no more descriptors");
  EXPECT_EQ(peer.error().rank, 2);
}

TEST_F(StarTest, NamesTheRankThatEnded) {
  stars_[2].reset();
  const auto host = stars_[0]->exchange({}, soon());
  ASSERT_FALSE(host);
  EXPECT_EQ(host.error().message,
            "rank 2 on host n2 is gone: it ended while the ranks joined (connection closed)");
  stars_[0].reset();
  const auto peer = stars_[1]->exchange({}, soon());
  ASSERT_FALSE(peer);
  EXPECT_EQ(peer.error().code, ErrorCode::kPeerLost);
  EXPECT_EQ(peer.error().rank, 0);
}

TEST_F(StarTest, DetectsTheDeathOfARankThatHasAlreadySent) {
  std::jthread peer([&] {
    // It sends its part, and ends without waiting for the answer.
    static_cast<void>(stars_[2]->exchange({}, Clock::now()));
    stars_[2].reset();
  });
  const auto host = stars_[0]->exchange({}, soon());
  ASSERT_FALSE(host);
  EXPECT_EQ(host.error().rank, 2);
}

TEST_F(StarTest, NamesTheRankThatDoesNotAnswerInTime) {
  const auto host = stars_[0]->exchange({}, Clock::now() + std::chrono::milliseconds(50));
  ASSERT_FALSE(host);
  EXPECT_EQ(host.error().message,
            "rank 1 on host n1 did not finish joining rank 0 on host n0 in time");
}

TEST_F(StarTest, EndsItsWaitsWhenItIsCancelled) {
  std::array<int, 2> fds = {};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds.data()), 0);
  const Descriptor silent(fds[1]);
  std::array<int, 2> cancel = {};
  ASSERT_EQ(::pipe(cancel.data()), 0);
  const Descriptor is_cancelled(cancel[0]);
  Descriptor(cancel[1]).close();
  Star star({.rank = 1, .size = 2, .host = "n1"}, Descriptor(fds[0]),
            {kTestKey, Purpose::kRendezvous, {}, {}}, "n0", is_cancelled.get());
  const auto answer = star.exchange({}, soon());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kPeerLost);
  EXPECT_EQ(answer.error().message, "rank 1 on host n1 was cancelled while the ranks joined");
}

TEST_F(StarTest, RejectsMessagesWithoutAValidSeal) {
  std::array<int, 2> fds = {};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds.data()), 0);
  const Descriptor forger(fds[1]);
  Star star({.rank = 1, .size = 2, .host = "n1"}, Descriptor(fds[0]),
            {kTestKey, Purpose::kRendezvous, {}, {}}, "n0");
  const Bytes forged = ByteWriter().number(std::uint32_t{1}).raw(Digest{}).number('\1').take();
  ASSERT_TRUE(send_all(forger, forged, soon()));
  const auto answer = star.exchange({}, soon());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kAuthentication);
}

// A rank that is late may still dial the port that a rank of its world had, and that a later world
// of the same job uses now.
TEST(Rendezvous, GivesEachWorldOfAJobItsOwnKey) {
  const Bytes key(16, std::byte{7});
  Roster roster;
  roster.members = {{.host = "n0", .endpoint = "10.0.0.1:4000"},
                    {.host = "n1", .endpoint = "10.0.0.2:4001"}};
  Roster later = roster;
  later.members[1].endpoint = "10.0.0.2:4002";
  EXPECT_EQ(key_of_world(key, roster), key_of_world(key, roster));
  EXPECT_NE(key_of_world(key, roster), key_of_world(key, later));
  EXPECT_NE(key_of_world(key, roster), key_of_world(Bytes(16, std::byte{8}), roster));
  EXPECT_NE(key_of_world(key, roster), key);
}

TEST(Rendezvous, IsOpenAtEveryAddressOfTheHost) {
  const Address one = resolve("127.0.0.1:0")->front();
  const Address two = resolve("127.0.0.2:0")->front();
  const Address elsewhere = resolve("192.0.2.1:0")->front();  // for documentation: no host has it

  const auto listeners = listen_on_all({one, elsewhere, two});

  ASSERT_TRUE(listeners) << listeners.error().to_string();
  ASSERT_EQ(listeners->size(), 2u);
  for (const Descriptor& listener : *listeners) {
    EXPECT_TRUE(connect_to(local_address(listener.get()), soon()));
  }
  const auto taken = listen_on_all({elsewhere, local_address(listeners->front().get())});
  ASSERT_FALSE(taken);
  EXPECT_TRUE(taken.error().message.starts_with("cannot listen on 127.0.0.1:"))
      << taken.error().message;
}

TEST(Rendezvous, FailsIfItsPortIsInUseAtOneAddressOfTheHost) {
  const Address taken = resolve("127.0.0.2:0")->front();
  const Result<Descriptor> other_program = listen_on(taken);
  ASSERT_TRUE(other_program) << other_program.error().to_string();
  const std::uint16_t port = local_address(other_program->get()).port();
  // No program listens there, unless by chance.
  const Address loopback = resolve("127.0.0.1:0")->front().with_port(port);

  const auto listeners = listen_on_all({loopback, taken.with_port(port)});

  ASSERT_FALSE(listeners);
  EXPECT_EQ(listeners.error().message,
            "cannot listen on 127.0.0.2:" + std::to_string(port) + ": Address already in use");
}

TEST(Rendezvous, IsOpenOnceAtAnAddressThatIsNamedTwice) {
  const Address free = local_address(listen_on(resolve("127.0.0.1:0")->front())->get());

  const auto listeners = listen_on_all({free, free});

  ASSERT_TRUE(listeners) << listeners.error().to_string();
  EXPECT_EQ(listeners->size(), 1u);
}

TEST(Rendezvous, ExplainsThatOtherHostsCannotReachALoopbackAddress) {
  const Address loopback = resolve("127.0.1.1:4000")->front();
  const Address public_one = resolve("192.0.2.1:4000")->front();
  EXPECT_EQ(note_of_loopback("node0:4000", {loopback}),
            "node0 is 127.0.1.1 on its own host, which other hosts cannot reach");
  EXPECT_EQ(note_of_loopback("node0:4000", {public_one, loopback}), "");
  EXPECT_EQ(note_of_loopback("127.0.1.1:4000", {loopback}), "");
  EXPECT_EQ(note_of_loopback("localhost:4000", {loopback}), "");
  EXPECT_EQ(note_of_loopback("", {loopback}), "");
}

TEST(Rendezvous, LeavesTimeForItsOtherAddresses) {
  using std::chrono::seconds;
  const Deadline now = Clock::now();
  EXPECT_EQ(limit_of_attempt(1, now, now + seconds(60)), now + seconds(60));
  EXPECT_EQ(limit_of_attempt(2, now, now + seconds(60)), now + seconds(3));
  EXPECT_EQ(limit_of_attempt(2, now, now + seconds(1)), now + seconds(1));
}

TEST(Rendezvous, AddsItsNoteToTheNamesOfTheMissingRanks) {
  std::vector<Descriptor> listeners;
  listeners.push_back(*listen_on(resolve("127.0.0.1:0")->front()));
  Acceptor door(std::move(listeners), kTestKey, 2);
  std::vector<AcceptedPeer> peers;
  const RankIdentity self{.rank = 0, .size = 2, .host = "n0", .endpoint = "n0:1"};
  const auto roster = gather(door, self, {}, peers, Clock::now(), std::chrono::seconds(60), -1,
                             "node0 is 127.0.1.1");
  ASSERT_FALSE(roster);
  EXPECT_EQ(roster.error().message,
            "rank 1 of 2 did not reach rank 0 on host n0 within 60 s; node0 is 127.0.1.1");
}

}  // namespace
}  // namespace muster::collective
