#include "bootstrap/acceptor.h"

#include <gtest/gtest.h>

#include <thread>

#include "bootstrap/test_values.h"
#include "transport/socket.h"
#include "transport/test_deadline.h"

namespace muster::collective {
namespace {

using testing::kTestKey;
using testing::soon;

class AcceptorTest : public ::testing::Test {
 protected:
  AcceptorTest() {
    Result<Descriptor> listener = listen_on(resolve("127.0.0.1:0")->front());
    address_ = local_address(listener->get());
    std::vector<Descriptor> listeners;
    listeners.push_back(*std::move(listener));
    door_.emplace(std::move(listeners), kTestKey, 2);
  }

  Descriptor call() { return *connect_to(address_, soon()); }

  Address address_;
  std::optional<Acceptor> door_;
};

TEST_F(AcceptorTest, AcceptsARankDespiteSilentAndInvalidConnections) {
  const Descriptor silent = call();
  const Descriptor scanner = call();
  ASSERT_TRUE(send_all(scanner, view_of("GET / HTTP/1.1\r\n\r\n"), soon()));
  call().close();
  std::jthread rank([&] {
    const Descriptor socket = call();
    EXPECT_TRUE(introduce(socket, kTestKey, Purpose::kControl, {.rank = 1, .size = 2, .host = "n1"},
                          soon()));
  });

  const Result<AcceptedPeer> peer = door_->next(soon());

  ASSERT_TRUE(peer) << peer.error().to_string();
  EXPECT_EQ(peer->introduction.name(), "rank 1 on host n1");
  EXPECT_EQ(peer->handshake.purpose, Purpose::kControl);
}

TEST_F(AcceptorTest, ReportsDroppedConnections) {
  const Descriptor scanner = call();
  ASSERT_TRUE(send_all(scanner, view_of("GET /"), soon()));

  const Result<AcceptedPeer> peer = door_->next(Clock::now() + std::chrono::seconds(3));

  ASSERT_FALSE(peer);
  EXPECT_EQ(peer.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(door_->dropped(), "1 other connection was dropped, from " +
                                  local_address(scanner.get()).to_string() +
                                  " (it does not speak this protocol)");
}

TEST_F(AcceptorTest, LimitsTheNumberOfOpenConnections) {
  std::vector<Descriptor> crowd;
  for (int i = 0; i < 100; ++i) crowd.push_back(call());

  const Result<AcceptedPeer> peer = door_->next(Clock::now() + std::chrono::seconds(3));

  ASSERT_FALSE(peer);
  EXPECT_TRUE(door_->dropped().starts_with("34 other connections were dropped"))
      << door_->dropped();
}

TEST_F(AcceptorTest, KeepsARankThatConnectedBeforeAFloodOfStrangers) {
  const Descriptor socket = call();
  ClientHandshake rank(kTestKey, Purpose::kRendezvous, Nonce{},
                       {.rank = 1, .size = 2, .host = "n1"});
  ASSERT_TRUE(send_all(socket, rank.to_send(), soon()));
  std::vector<Descriptor> crowd;
  for (int i = 0; i < 100; ++i) crowd.push_back(call());
  std::jthread goes_on([&] {
    Bytes challenge(rank.missing_bytes());
    ASSERT_TRUE(receive_all(socket, challenge, soon()));
    ASSERT_EQ(rank.take(challenge), ClientHandshake::Verdict::kIntroduced);
    EXPECT_TRUE(send_all(socket, rank.to_send(), soon()));
  });

  const Result<AcceptedPeer> peer = door_->next(soon());

  ASSERT_TRUE(peer) << peer.error().to_string();
  EXPECT_EQ(peer->introduction.name(), "rank 1 on host n1");
}

TEST_F(AcceptorTest, LeavesNoPortOpen) {
  door_->close();
  EXPECT_FALSE(connect_to(address_, soon()));
}

}  // namespace
}  // namespace muster::collective
