#include "engine/shim/quick_acks.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <chrono>

namespace muster::engine {

namespace {

constexpr pid_t kServer = 7;

/// A connection over loopback whose ends have sent and answered, as in a handshake: the kernel of the
/// server delays acknowledgements from then on.
class QuickAcksTest : public testing::Test {
 protected:
  QuickAcksTest() {
    const base::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof where;
    ::bind(listener.get(), reinterpret_cast<sockaddr*>(&where), size);
    ::listen(listener.get(), 1);
    ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&where), &size);
    client_ = base::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ::connect(client_.get(), reinterpret_cast<sockaddr*>(&where), size);
    server_ = base::UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    for (int i = 0; i < 8; ++i) {
      pass(client_, server_);
      pass(server_, client_);
    }
  }

  static void pass(const base::UniqueFd& from, const base::UniqueFd& to) {
    char byte = 'x';
    ASSERT_EQ(::send(from.get(), &byte, 1, MSG_NOSIGNAL), 1);
    ASSERT_EQ(::recv(to.get(), &byte, 1, 0), 1);
  }

  void send_from_client() const { ASSERT_EQ(::send(client_.get(), "x", 1, MSG_NOSIGNAL), 1); }

  int unacknowledged_bytes() const {
    int bytes = -1;
    ::ioctl(client_.get(), SIOCOUTQ, &bytes);
    return bytes;
  }

  bool has_arrivals(int timeout = 0) const {
    pollfd watched{acks_.descriptor(), POLLIN, 0};
    return ::poll(&watched, 1, timeout) == 1;
  }

  base::UniqueFd client_;
  base::UniqueFd server_;
  QuickAcks acks_;
  QuickAcks::Steady::time_point now_ = QuickAcks::Steady::now();
};

TEST_F(QuickAcksTest, DataIsAcknowledgedWhenTheServerHasReadIt) {
  acks_.add(kServer, server_);
  int acknowledged = 0;
  for (int i = 0; i < QuickAcks::kArrivals - 1; ++i) {
    send_from_client();
    ASSERT_TRUE(has_arrivals(-1));
    acks_.serve(now_);
    char byte = 0;
    ::recv(server_.get(), &byte, 1, 0);
    EXPECT_EQ(acks_.milliseconds_to_wait(), 1);
    acks_.serve(now_);
    if (unacknowledged_bytes() == 0) ++acknowledged;
  }

  // Not each time: the kernel may pass an acknowledgement to its own thread if the machine is busy.
  EXPECT_GT(acknowledged, 0);
}

TEST_F(QuickAcksTest, NothingIsToDoOnceNoAcknowledgementIsDue) {
  acks_.add(kServer, server_);
  send_from_client();
  ASSERT_TRUE(has_arrivals(-1));
  acks_.serve(now_);
  acks_.serve(now_ + std::chrono::milliseconds(50));

  EXPECT_EQ(acks_.milliseconds_to_wait(), -1);
}

TEST_F(QuickAcksTest, AConnectionIsLeftAloneAfterTheHandshake) {
  acks_.add(kServer, server_);
  for (int i = 0; i < QuickAcks::kArrivals; ++i) {
    send_from_client();
    ASSERT_TRUE(has_arrivals(-1));
    acks_.serve(now_);
  }
  send_from_client();

  EXPECT_FALSE(has_arrivals());
}

TEST_F(QuickAcksTest, TheClientReadsTheEndOnceTheServerHasEnded) {
  acks_.add(kServer, server_);
  server_.reset();
  acks_.ended(kServer);

  char byte = 0;
  EXPECT_EQ(::recv(client_.get(), &byte, 1, 0), 0);
  EXPECT_FALSE(has_arrivals());
}

}  // namespace

}  // namespace muster::engine
