#include "transport/socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

#include "transport/test_deadline.h"

namespace muster::collective {
namespace {

TEST(Address, IsWrittenAsParsed) {
  for (const char* const text :
       {"127.0.0.1:4000", "127.81.2.1:1", "[::1]:65535", "0.0.0.0:0", "unix:@muster-x"}) {
    const auto addresses = resolve(text);
    ASSERT_TRUE(addresses) << addresses.error().to_string();
    EXPECT_EQ(addresses->front().to_string(), text);
  }
}

TEST(Address, OfANameIsAnAddressOfItsHost) {
  const auto addresses = resolve("localhost:80");
  ASSERT_TRUE(addresses) << addresses.error().to_string();
  EXPECT_EQ(addresses->front().port(), 80);
}

TEST(Address, RejectsInvalidEndpoints) {
  for (const char* const text :
       {"", "host", ":80", "host:", "host:port", "host:70000", "host:-1", "::1:80", "[]:80"}) {
    const auto addresses = resolve(text);
    ASSERT_FALSE(addresses) << text;
    EXPECT_EQ(addresses.error().message, "'" + std::string(text) + "' is not host:port");
  }
}

TEST(Address, DetectsWildcards) {
  EXPECT_TRUE(resolve("0.0.0.0:80")->front().is_wildcard());
  EXPECT_TRUE(resolve("[::]:80")->front().is_wildcard());
  EXPECT_FALSE(resolve("127.0.0.1:80")->front().is_wildcard());
  EXPECT_FALSE(resolve("[::1]:80")->front().is_wildcard());
}

TEST(Address, DetectsLoopbackAddresses) {
  EXPECT_TRUE(resolve("127.0.0.1:80")->front().is_loopback());
  EXPECT_TRUE(resolve("127.81.2.1:80")->front().is_loopback());
  EXPECT_TRUE(resolve("[::1]:80")->front().is_loopback());
  EXPECT_TRUE(resolve("unix:@x")->front().is_loopback());
  EXPECT_FALSE(resolve("128.0.0.1:80")->front().is_loopback());
  EXPECT_FALSE(resolve("[::2]:80")->front().is_loopback());
}

TEST(Address, TakesAnotherPort) {
  EXPECT_EQ(resolve("127.0.0.1:80")->front().with_port(81).to_string(), "127.0.0.1:81");
  EXPECT_EQ(resolve("[::1]:80")->front().with_port(81).to_string(), "[::1]:81");
}

}  // namespace
namespace {

using testing::soon;

Descriptor accepted(const Descriptor& listener) {
  pollfd entry = {listener.get(), POLLIN, 0};
  ::poll(&entry, 1, 20'000);
  return std::move(accept_from(listener)->socket);
}

TEST(Socket, CarriesBytesOverEveryKindOfAddress) {
  const std::string name = "muster-socket-test-" + std::to_string(::getpid());
  for (const Address& address : {resolve("127.0.0.1:0")->front(), unix_address(name)}) {
    const Result<Descriptor> listener = listen_on(address);
    ASSERT_TRUE(listener) << listener.error().to_string();
    const Result<Descriptor> ours = connect_to(local_address(listener->get()), soon());
    ASSERT_TRUE(ours) << ours.error().to_string();
    const Descriptor theirs = accepted(*listener);
    ASSERT_TRUE(theirs);
    EXPECT_TRUE(send_all(*ours, view_of("hello"), soon()));
    std::array<std::byte, 5> bytes;
    EXPECT_TRUE(receive_all(theirs, bytes, soon()));
    EXPECT_TRUE(std::ranges::equal(bytes, view_of("hello")));
  }
}

TEST(Socket, NamesTheAddressThatRefusesAConnection) {
  const std::string name = "unix:@muster-nobody-" + std::to_string(::getpid());
  const Result<Descriptor> socket = connect_to(resolve(name)->front(), soon());
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().message, "cannot connect to " + name + ": Connection refused");
}

TEST(Socket, SendsDescriptors) {
  const Result<Descriptor> listener =
      listen_on(unix_address("muster-pass-test-" + std::to_string(::getpid())));
  ASSERT_TRUE(listener);
  const Result<Descriptor> ours = connect_to(local_address(listener->get()), soon());
  const Descriptor theirs = accepted(*listener);
  ASSERT_TRUE(ours && theirs);
  std::array<int, 2> fds = {};
  ASSERT_EQ(::pipe(fds.data()), 0);
  const Descriptor reader(fds[0]);
  const Descriptor writer(fds[1]);

  ASSERT_TRUE(send_descriptor(*ours, writer.get()));
  ASSERT_TRUE(send_descriptor(*ours, -1));

  const Result<Descriptor> copy = receive_descriptor(theirs);
  ASSERT_TRUE(copy);
  ASSERT_EQ(::write(copy->get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(reader.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
  const Result<Descriptor> none = receive_descriptor(theirs);
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
}

TEST(Socket, ReportsTheEndOfAConnectionInsteadOfADescriptor) {
  std::array<int, 2> fds = {};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds.data()), 0);
  const Descriptor ours(fds[0]);
  Descriptor(fds[1]).close();
  const Result<Descriptor> none = receive_descriptor(ours);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kPeerLost);
}

// The reader of a pipe reads its end once all processes have closed the other end.
TEST(Descriptor, IsClosedInChildrenUntilItsOwnerGivesItUp) {
  for (const bool gives_up : {false, true}) {
    std::array<int, 2> ends = {};
    std::array<int, 2> end_of_child = {};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(end_of_child.data(), O_CLOEXEC), 0);
    const Descriptor reader(ends[0]);
    Descriptor writer(ends[1]);
    writer.close_in_children();
    if (gives_up) writer = Descriptor(writer.release());
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(end_of_child[1]);
      char nothing = 0;
      ::_exit(::read(end_of_child[0], &nothing, 1) == 0 ? 0 : 1);
    }
    writer.close();
    // The child may not have begun to run yet.
    pollfd entry = {reader.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&entry, 1, gives_up ? 0 : 30'000), gives_up ? 0 : 1);
    for (const int end : end_of_child) ::close(end);
    ::waitpid(child, nullptr, 0);
  }
}

}  // namespace
}  // namespace muster::collective
