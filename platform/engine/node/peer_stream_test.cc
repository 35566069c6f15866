#include "engine/node/peer_stream.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>

#include <optional>
#include <string>
#include <utility>

namespace muster::engine::node {
namespace {

/// The two ends of a connection over the loopback interface.
std::pair<base::UniqueFd, base::UniqueFd> connected_sockets() {
  const base::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  EXPECT_EQ(::bind(listener.get(), plain, length), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_EQ(::getsockname(listener.get(), plain, &length), 0);
  base::UniqueFd near(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(near.get(), plain, length), 0);
  base::UniqueFd far(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  return {std::move(near), std::move(far)};
}

int limit_of(int socket) {
  int limit = -1;
  socklen_t size = sizeof limit;
  EXPECT_EQ(::getsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, &size), 0);
  return limit;
}

/// Runs the loop until the limit of the socket is `limit`; the time limit is reached only by a hang.
bool comes_to_limit(base::EventLoop& loop, int socket, int limit) {
  bool is_late = false;
  const auto bound = loop.after(std::chrono::seconds(60), [&] { is_late = true; });
  while (limit_of(socket) != limit && !is_late) {
    const auto tick = loop.after(std::chrono::milliseconds(5), [&] { loop.stop(); });
    loop.run();
  }
  return !is_late;
}

// With the limit, the kernel would end the connection after half a minute: it does not distinguish an
// end that reads nothing from one that is gone.
TEST(PeerStream, HasNoTimeLimitWhileTheOtherEndReadsNothing) {
  ::signal(SIGPIPE, SIG_IGN);
  base::EventLoop loop;
  auto [near, far] = connected_sockets();
  const int socket = near.get();
  std::optional<std::string> end;
  const auto stream = stream_on(loop, std::move(near), {.look = std::chrono::milliseconds(10)});
  stream->listen({.on_bytes = nullptr, .on_end = [&](const std::string& why) { end = why; }});
  EXPECT_EQ(limit_of(socket), 30'000);

  size_t left = 32 << 20;  // more than the kernel takes
  stream->write(std::string(left, 'x'));

  EXPECT_TRUE(comes_to_limit(loop, socket, 0));
  EXPECT_GT(stream->waiting(), 0U);

  std::string bytes(1 << 20, ' ');
  while (left > 0 && !end) {
    const ssize_t count = ::recv(far.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count > 0) left -= static_cast<size_t>(count);
    loop.post([&] { loop.stop(); });
    loop.run();
  }
  EXPECT_TRUE(comes_to_limit(loop, socket, 30'000));
  EXPECT_FALSE(end) << *end;
}

}  // namespace
}  // namespace muster::engine::node
