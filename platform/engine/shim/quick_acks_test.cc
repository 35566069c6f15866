#include "engine/shim/quick_acks.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <netinet/in.h>
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
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&where), size), 0);
    ::listen(listener.get(), 1);
    ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&where), &size);
    client_ = base::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(client_.get(), reinterpret_cast<sockaddr*>(&where), size), 0);
    server_ = base::UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const timeval limit{.tv_sec = 60, .tv_usec = 0};
    for (const base::UniqueFd* end : {&client_, &server_}) {
      ::setsockopt(end->get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    }
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

  int unacknowledged_bytes() const {
    int bytes = -1;
    ::ioctl(client_.get(), SIOCOUTQ, &bytes);
    return bytes;
  }

  base::UniqueFd client_;
  base::UniqueFd server_;
  QuickAcks acks_;
  QuickAcks::Steady::time_point now_ = QuickAcks::Steady::now();
};

TEST_F(QuickAcksTest, DataIsAcknowledgedWhenTheServerHasReadIt) {
  acks_.add(kServer, server_, now_);
  EXPECT_EQ(acks_.milliseconds_to_wait(), 1);
  int rounds = 0;
  int acknowledged = 0;
  for (int tries = 0; tries < 100 && rounds < 10; ++tries) {
    const auto begin = QuickAcks::Steady::now();
    pass(client_, server_);
    acks_.serve(now_);
    const bool is_acknowledged = unacknowledged_bytes() == 0;
    pass(server_, client_);  // from now on the kernel delays again
    // On a busy machine the kernel may have acknowledged the data after its own delay, of 40 ms.
    if (QuickAcks::Steady::now() - begin > std::chrono::milliseconds(20)) continue;
    ++rounds;
    if (is_acknowledged) ++acknowledged;
  }

  // Not always: the kernel of a busy machine may pass acknowledgements to a thread of its own.
  EXPECT_GE(2 * acknowledged, rounds);
}

TEST_F(QuickAcksTest, AConnectionIsLeftAloneAfterTheHandshake) {
  acks_.add(kServer, server_, now_);
  acks_.serve(now_);
  EXPECT_EQ(acks_.milliseconds_to_wait(), 1);
  acks_.serve(now_ + QuickAcks::kHandshake);

  EXPECT_EQ(acks_.milliseconds_to_wait(), -1);
}

TEST_F(QuickAcksTest, TheClientReadsTheEndOnceTheServerHasEnded) {
  acks_.add(kServer, server_, now_);
  server_.reset();
  acks_.ended(kServer);

  char byte = 0;
  EXPECT_EQ(::recv(client_.get(), &byte, 1, 0), 0);
  EXPECT_EQ(acks_.milliseconds_to_wait(), -1);
}

}  // namespace

}  // namespace muster::engine
