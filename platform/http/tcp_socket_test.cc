#include "http/tcp_socket.h"

#include <gtest/gtest.h>

namespace muster::http {
namespace {

using base::ErrorCode;

TEST(HostAndPort, IsReadAndWrittenAlike) {
  for (const char* text : {"0.0.0.0:7443", "[::1]:0", "localhost:65535", "a-b.example.com:1"}) {
    const auto parsed = parse_host_and_port(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(to_string(*parsed), text);
  }
  EXPECT_EQ(parse_host_and_port("[fe80::1]:22")->host, "fe80::1");
}

TEST(HostAndPort, RefusesWhatIsNone) {
  for (const char* text : {"", "localhost", ":7443", "localhost:", "localhost:x", "localhost:65536",
                           "localhost:-1", "::1:7443", "[::1]", "a b:1", "http://a:1", "a:1 "}) {
    const auto parsed = parse_host_and_port(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalid);
  }
}

TEST(ListenOn, SaysWhichPortItWasGiven) {
  const auto listener = listen_on({.host = "127.0.0.1", .port = 0});
  ASSERT_TRUE(listener) << listener.error().to_string();

  const auto address = parse_host_and_port(*listening_at(listener->get()));

  EXPECT_EQ(address->host, "127.0.0.1");
  EXPECT_GT(address->port, 0);
  const auto client = connect_to(*address, std::chrono::seconds(5));
  ASSERT_TRUE(client) << client.error().to_string();
  EXPECT_EQ(address_of_peer(client->get()), "127.0.0.1");
}

TEST(ListenOn, TellsOfAPortThatIsTaken) {
  const auto first = listen_on({.host = "127.0.0.1", .port = 0});
  ASSERT_TRUE(first);
  const auto address = *listening_at(first->get());

  const auto second = listen_on(*parse_host_and_port(address));

  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_EQ(second.error().what, "another program listens on " + address);
}

TEST(ListenOn, TellsOfAnAddressThatIsNotThisMachines) {
  const auto listener = listen_on({.host = "192.0.2.1", .port = 0});  // for documentation only

  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, ErrorCode::kInvalid);
}

TEST(ConnectTo, SaysThatNobodyAnswers) {
  auto listener = listen_on({.host = "127.0.0.1", .port = 0});
  ASSERT_TRUE(listener);
  const auto address = *listening_at(listener->get());
  listener->reset();

  const auto client = connect_to(*parse_host_and_port(address), std::chrono::seconds(5));

  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(client.error().what, "no server answers at " + address + ": Connection refused");
}

}  // namespace
}  // namespace muster::http
