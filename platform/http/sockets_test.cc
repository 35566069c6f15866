#include "http/sockets.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>
#include <vector>

#include "base/event_loop.h"
#include "base/test_port.h"
#include "http/connecting.h"
#include "http/test_server.h"

namespace muster::http {

namespace fs = std::filesystem;

using base::ErrorCode;

namespace {

TEST(HostAndPort, IsReadBackAsWritten) {
  for (const char* text : {"0.0.0.0:7443", "[::1]:0", "localhost:65535", "a-b.example.com:1"}) {
    const auto parsed = parse_host_and_port(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(to_string(*parsed), text);
  }
  EXPECT_EQ(parse_host_and_port("[fe80::1]:22")->host, "fe80::1");
}

TEST(HostAndPort, RefusesInvalidTexts) {
  for (const char* text : {"", "localhost", ":7443", "localhost:", "localhost:x", "localhost:65536",
                           "localhost:-1", "::1:7443", "[::1]", "a b:1", "http://a:1", "a:1 "}) {
    const auto parsed = parse_host_and_port(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalid);
  }
}

TEST(ListenOn, ReportsTheChosenPort) {
  const auto listener = listen_on({.host = "127.0.0.1", .port = 0});
  ASSERT_TRUE(listener) << listener.error().to_string();

  const auto address = parse_host_and_port(*listening_at(listener->get()));

  EXPECT_EQ(address->host, "127.0.0.1");
  EXPECT_GT(address->port, 0);
  const auto client = connect_to(*address, std::chrono::seconds(5));
  ASSERT_TRUE(client) << client.error().to_string();
  EXPECT_EQ(address_of_peer(client->get()), "127.0.0.1");
}

TEST(ListenOn, ReportsAPortInUse) {
  const auto first = listen_on({.host = "127.0.0.1", .port = 0});
  ASSERT_TRUE(first);
  const auto address = *listening_at(first->get());

  const auto second = listen_on(*parse_host_and_port(address));

  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_EQ(second.error().what, "another program listens on " + address);
}

TEST(ListenOn, ReportsAnAddressOfAnotherMachine) {
  const auto listener =
      listen_on({.host = "192.0.2.1", .port = 0});  // a range that is reserved for documentation

  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, ErrorCode::kInvalid);
}

TEST(ConnectTo, ReportsThatNoServerAnswers) {
  const base::HeldPort port;
  const std::string address = "127.0.0.1:" + std::to_string(port.number());

  const auto client = connect_to(*parse_host_and_port(address), std::chrono::seconds(5));

  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(client.error().what, "no server answers at " + address + ": Connection refused");
}

}  // namespace
namespace {

/// A socket file whose server died without removing it.
void leave_stale_socket(const fs::path& path) {
  auto listener = listen_on(path);
  ASSERT_TRUE(listener);
  fs::rename(path, path.string() + ".moved");
  listener->close();
  fs::rename(path.string() + ".moved", path);
}

TEST(ClientOfAddress, IsTheNetworkOfAnIpv6Address) {
  for (const auto& [address, client] : {std::pair("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
                                        {"2001:db8:1:2::7", "2001:db8:1:2::/64"},
                                        {"2001:db8:1:3::7", "2001:db8:1:3::/64"},
                                        {"::1", "::/64"},
                                        {"10.0.0.1", "10.0.0.1"},
                                        {"loopback", "loopback"},
                                        {"", ""}}) {
    EXPECT_EQ(client_of_address(address), client);
  }
}

TEST(UnixSocket, IsOpenToItsOwnerAlone) {
  const base::TestFolder folder;
  const mode_t before = ::umask(0);

  const auto listener = listen_on(folder / "s");

  ::umask(before);
  ASSERT_TRUE(listener) << listener.error().to_string();
  struct stat status{};
  ASSERT_EQ(::stat((folder / "s").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST(UnixSocket, IsNotInheritedByChildren) {
  const base::TestFolder folder;
  const auto listener = listen_on(folder / "s");
  ASSERT_TRUE(listener);
  const auto client = connect_to(folder / "s");
  ASSERT_TRUE(client);

  EXPECT_NE(::fcntl(listener->fd(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_NE(::fcntl(client->get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(UnixSocket, ReplacesASocketWithoutAServer) {
  const base::TestFolder folder;
  leave_stale_socket(folder / "s");
  ASSERT_EQ(connect_to(folder / "s").error().code, ErrorCode::kUnavailable);

  const auto listener = listen_on(folder / "s");

  ASSERT_TRUE(listener) << listener.error().to_string();
  EXPECT_TRUE(connect_to(folder / "s"));
}

TEST(UnixSocket, KeepsTheSocketOfARunningServer) {
  const base::TestFolder folder;
  const auto first = listen_on(folder / "s");
  ASSERT_TRUE(first);

  const auto second = listen_on(folder / "s");

  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_EQ(second.error().what, "another server answers on '" + (folder / "s").string() + "'");
  EXPECT_TRUE(connect_to(folder / "s"));
}

TEST(UnixSocket, KeepsAFileThatIsNotASocket) {
  const base::TestFolder folder;
  std::ofstream(folder / "s") << "precious";

  const auto listener = listen_on(folder / "s");

  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, ErrorCode::kConflict);
  EXPECT_EQ(fs::file_size(folder / "s"), 8U);
}

TEST(UnixSocket, OfManyServersThatStartAtOnceOneListens) {
  const base::TestFolder folder;
  leave_stale_socket(folder / "s");
  std::vector<base::Result<Listener>> results;
  for (int i = 0; i < 8; ++i) results.emplace_back(base::Error{});

  std::vector<std::thread> servers;
  for (auto& result : results) {
    servers.emplace_back([&] { result = listen_on(folder / "s"); });
  }
  for (std::thread& server : servers) server.join();

  EXPECT_EQ(std::count_if(results.begin(), results.end(), [](const auto& r) { return r.ok(); }), 1);
  EXPECT_TRUE(connect_to(folder / "s"));
}

TEST(UnixSocket, RemovesItsFileWhenItClosesButNoOtherServers) {
  const base::TestFolder folder;
  auto first = listen_on(folder / "s");
  ASSERT_TRUE(first);
  fs::remove(folder / "s");
  auto second = listen_on(folder / "s");
  ASSERT_TRUE(second);

  first->close();
  EXPECT_TRUE(connect_to(folder / "s"));

  second->close();
  EXPECT_FALSE(fs::exists(folder / "s"));
}

TEST(UnixSocket, ReportsTheMaximumLengthOfAPath) {
  const fs::path path = "/tmp/" + std::string(103, 'x');

  for (const auto& error : {listen_on(path).error(), connect_to(path).error()}) {
    EXPECT_EQ(error.code, ErrorCode::kInvalid);
    EXPECT_EQ(error.what,
              "socket path '" + path.string() + "' has 108 bytes; a unix socket takes 1 to 107");
  }
}

TEST(UnixSocket, TakesAPathOfTheGreatestLength) {
  const base::TestFolder folder;
  const size_t taken = (folder / "").string().size();

  EXPECT_TRUE(listen_on(folder / std::string(107 - taken, 'x')));
}

int option_of(int fd, int level, int name) {
  int value = 0;
  socklen_t size = sizeof value;
  EXPECT_EQ(::getsockopt(fd, level, name, &value, &size), 0);
  return value;
}

TEST(ConnectAsync, DetectsThatTheOtherEndIsGoneWithinAMinute) {
  const auto listener = listen_on({.host = "127.0.0.1", .port = 0});
  ASSERT_TRUE(listener) << listener.error().to_string();
  base::EventLoop loop;
  base::Result<base::UniqueFd> connected = base::Error{.what = "no answer"};

  const auto connecting =
      connect_async(loop, *parse_host_and_port(*listening_at(listener->get())),
                    std::chrono::seconds(5), [&](base::Result<base::UniqueFd> fd) {
                      connected = std::move(fd);
                      loop.stop();
                    });
  loop.run();

  ASSERT_TRUE(connected) << connected.error().to_string();
  const int fd = connected->get();
  EXPECT_NE(option_of(fd, SOL_SOCKET, SO_KEEPALIVE), 0);
  EXPECT_LE(option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE) +
                option_of(fd, IPPROTO_TCP, TCP_KEEPINTVL) * option_of(fd, IPPROTO_TCP, TCP_KEEPCNT),
            60);
  // It would end a connection whose other end does not read for a while.
  EXPECT_EQ(option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
}

TEST(UnixSocket, IdentifiesTheUserAtTheOtherEnd) {
  const base::TestFolder folder;
  const auto listener = listen_on(folder / "s");
  ASSERT_TRUE(listener);
  const auto client = connect_to(folder / "s");
  ASSERT_TRUE(client);

  EXPECT_EQ(*peer_of(client->get()), ::geteuid());
}

TEST(TrustedPeer, IsOneselfOrRoot) {
  EXPECT_TRUE(is_trusted(1000, 1000));
  EXPECT_TRUE(is_trusted(0, 1000));
  EXPECT_TRUE(is_trusted(0, 0));
  EXPECT_FALSE(is_trusted(1001, 1000));
  EXPECT_FALSE(is_trusted(1000, 0));
}

}  // namespace
}  // namespace muster::http
