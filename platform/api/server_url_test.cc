#include "api/server_url.h"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

TEST(ServerUrl, IsAHostAndAPort) {
  const std::pair<const char*, ServerAddress> cases[] = {
      {"https://lab.example.org", {"lab.example.org", 7443}},
      {"https://lab.example.org/", {"lab.example.org", 7443}},
      {"https://10.0.0.7:443", {"10.0.0.7", 443}},
      {"https://[::1]:40000", {"::1", 40000}},
      {"https://[fe80::1]", {"fe80::1", 7443}},
  };
  for (const auto& [text, expected] : cases) {
    const auto address = parse_server_url(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(*address, expected) << text;
    EXPECT_EQ(*parse_server_url(server_url(address->host, address->port)), expected) << text;
  }
}

TEST(ServerUrl, ReportsInvalidAddresses) {
  const std::pair<const char*, const char*> cases[] = {
      {"http://lab", "it does not begin with https://"},
      {"lab", "it does not begin with https://"},
      {"https://", "'' is not a host"},
      {"https://:80", "'' is not a host"},
      {"https://lab:0", "':0' is not a port"},
      {"https://lab:65536", "':65536' is not a port"},
      {"https://lab:x", "':x' is not a port"},
      {"https://lab/v1", "'lab/v1' is not a host"},
      {"https://a b", "'a b' is not a host"},
      {"https://[::1", "its '[' is not closed"},
      {"https://[lab]", "'lab' is not a host"},
      {"https://[::1]x", "'x' is not a port"},
  };
  for (const auto& [text, why] : cases) {
    const auto address = parse_server_url(text);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().what,
              "'" + std::string(text) + "' is not the address of a server: " + why);
  }
}

TEST(ServerUrl, DoesNotPrintAPassword) {
  const auto address = parse_server_url("https://ada:sesame@lab");

  ASSERT_FALSE(address);
  EXPECT_EQ(address.error().to_string().find("sesame"), std::string::npos);
}

}  // namespace
}  // namespace muster::api
