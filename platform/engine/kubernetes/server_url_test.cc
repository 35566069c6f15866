#include "engine/kubernetes/server_url.h"

#include <gtest/gtest.h>

#include <array>

namespace muster::engine::kubernetes {
namespace {

TEST(ServerUrl, ReadsAddressesAsKubectlDoes) {
  struct Case {
    const char* text;
    ServerUrl url;
  };
  const std::array<Case, 6> cases{{
      {"https://10.0.0.1:6443", {.host = "10.0.0.1", .port = 6443}},
      {"https://api.example.com", {.host = "api.example.com", .port = 443}},
      {"https://r.example.com/k8s/clusters/c-1/",
       {.host = "r.example.com", .port = 443, .prefix = "/k8s/clusters/c-1"}},
      {"https://[fd00::1]:6443", {.host = "fd00::1", .port = 6443}},
      {"http://localhost:8080", {.has_tls = false, .host = "localhost", .port = 8080}},
      {"127.0.0.1:8080", {.has_tls = false, .host = "127.0.0.1", .port = 8080}},
  }};
  for (const Case& one : cases) {
    const auto url = parse_server_url(one.text);
    ASSERT_TRUE(url) << one.text;
    EXPECT_EQ(*url, one.url) << one.text;
  }
  EXPECT_EQ(to_string(*parse_server_url("https://[fd00::1]:6443/x")), "https://[fd00::1]:6443/x");
}

TEST(ServerUrl, RefusesOthers) {
  for (const char* text :
       {"", "https://", "ftp://x", "https://a:0", "https://a:70000", "https://a b",
        "https://user:secret@host", "https://[x]:1", "https://a/b?c"}) {
    const auto url = parse_server_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().to_string().find("secret"), std::string::npos);
  }
}

TEST(Proxy, ComesFromTheEnvironment) {
  const ServerUrl server{.host = "api.example.com", .port = 6443};
  const auto proxy = [&](std::vector<std::string> environment) -> std::string {
    const auto found = proxy_for(server, environment);
    if (!found) return "error";
    return *found ? (*found)->host + ":" + std::to_string((*found)->port) : "none";
  };
  EXPECT_EQ(proxy({}), "none");
  EXPECT_EQ(proxy({"HTTPS_PROXY=http://p:3128"}), "p:3128");
  EXPECT_EQ(proxy({"https_proxy=p"}), "p:80");
  EXPECT_EQ(proxy({"HTTPS_PROXY=socks5://p:1"}), "error");
  EXPECT_EQ(proxy({"HTTPS_PROXY=http://p:3128", "NO_PROXY=other, example.com"}), "none");
  EXPECT_EQ(proxy({"HTTPS_PROXY=http://p:3128", "no_proxy=.example.com"}), "none");
  EXPECT_EQ(proxy({"HTTPS_PROXY=http://p:3128", "NO_PROXY=api.example.com:443"}), "p:3128");
  EXPECT_EQ(proxy({"HTTPS_PROXY=http://p:3128", "NO_PROXY=*"}), "none");
  EXPECT_EQ(proxy({"HTTPS_PROXY=http://p:3128", "NO_PROXY=ample.com"}), "p:3128");
}

TEST(Proxy, IsNotUsedForAddressesThatNoProxyContains) {
  const std::vector<std::string> environment{"HTTPS_PROXY=http://p:3128",
                                             "NO_PROXY=10.0.0.0/8,fd00::/8,192.0.2.7"};
  for (const char* host : {"10.1.2.3", "fd00::1", "192.0.2.7", "127.0.0.1", "localhost", "::1"}) {
    const auto found = proxy_for({.host = host}, environment);
    ASSERT_TRUE(found);
    EXPECT_FALSE(*found) << host;
  }
  for (const char* host : {"11.1.2.3", "fe80::1", "192.0.2.8", "api"}) {
    const auto found = proxy_for({.host = host}, environment);
    ASSERT_TRUE(found);
    EXPECT_TRUE(*found) << host;
  }
}

TEST(Proxy, HasAUserAndAPassword) {
  const auto proxy = parse_proxy("http://ben:s%40cret@p:3128/");
  ASSERT_TRUE(proxy);
  EXPECT_EQ(proxy->host, "p");
  EXPECT_EQ(proxy->authorization, "Basic YmVuOnNAY3JldA==");
  const auto bad = parse_proxy("https://ben:secret@p");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().what,
            "invalid proxy '...@p': proxies of the kind 'https' are not supported");
}

}  // namespace
}  // namespace muster::engine::kubernetes
