#include "transport/address.h"

#include <gtest/gtest.h>

namespace muster::collective {
namespace {

TEST(Address, IsWrittenAsItIsRead) {
  for (const char* const text :
       {"127.0.0.1:4000", "127.81.2.1:1", "[::1]:65535", "0.0.0.0:0", "unix:@muster-x"}) {
    const auto addresses = resolve(text);
    ASSERT_TRUE(addresses) << addresses.error().to_string();
    EXPECT_EQ(addresses->front().to_string(), text);
  }
}

TEST(Address, OfANameIsOneOfItsHost) {
  const auto addresses = resolve("localhost:80");
  ASSERT_TRUE(addresses) << addresses.error().to_string();
  EXPECT_EQ(addresses->front().port(), 80);
}

TEST(Address, RefusesWhatIsNoEndpoint) {
  for (const char* const text :
       {"", "host", ":80", "host:", "host:port", "host:70000", "host:-1", "::1:80", "[]:80"}) {
    const auto addresses = resolve(text);
    ASSERT_FALSE(addresses) << text;
    EXPECT_EQ(addresses.error().message, "'" + std::string(text) + "' is not host:port");
  }
}

TEST(Address, KnowsTheOnesThatNobodyCanReach) {
  EXPECT_TRUE(resolve("0.0.0.0:80")->front().is_wildcard());
  EXPECT_TRUE(resolve("[::]:80")->front().is_wildcard());
  EXPECT_FALSE(resolve("127.0.0.1:80")->front().is_wildcard());
  EXPECT_FALSE(resolve("[::1]:80")->front().is_wildcard());
}

TEST(Address, KnowsTheOnesOfItsOwnHost) {
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
}  // namespace muster::collective
