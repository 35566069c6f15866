#include "notify/address_rules.h"

#include <gtest/gtest.h>

#include "notify/test_values.h"

namespace muster::notify {
namespace {

using base::ErrorCode;
using http::ip_address_of;

/// Why the connection is refused; empty: it is allowed.
std::string refusal(const Texts& allow, const std::string& url, const std::string& address,
                    bool allow_http = false) {
  const auto rules = AddressRules::of(allow, allow_http);
  EXPECT_TRUE(rules) << rules.error().what;
  const auto receiver = receiver_of(url);
  EXPECT_TRUE(receiver) << url << ": " << receiver.error().what;
  const auto checked = rules->check(*receiver, *ip_address_of(address));
  return checked ? "" : checked.error().what;
}

TEST(AddressRules, RefuseAddressesThatOnlyTheServerCanReach) {
  for (const char* address :
       {"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255",
        "127.0.0.1", "127.255.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.8",
        "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.9",
        "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "::", "::1", "fc00::1", "fdff::1",
        "fe80::1", "febf::1", "fec0::1", "ff02::1", "2001:db8::1", "2001::1",
        "2002:7f00:1::", "100::1", "3fff::1", "64:ff9b:1::a00:1",
        // The same addresses inside IPv6 addresses.
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0:10.0.0.1",
        "::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::169.254.169.254"}) {
    EXPECT_NE(kind_of_inner(*ip_address_of(address)), nullptr) << address;
    EXPECT_NE(refusal({}, "https://hooks.example.com", address), "") << address;
  }
}

TEST(AddressRules, AllowPublicAddresses) {
  for (const char* address :
       {"1.1.1.1", "9.255.255.255", "11.0.0.1", "100.63.255.255", "100.128.0.1", "126.0.0.1",
        "128.0.0.1", "169.253.0.1", "172.15.0.1", "172.32.0.1", "192.167.0.1", "192.169.0.1",
        "198.20.0.1", "223.255.255.255", "2606:4700::1111", "2a00:1450::1", "64:ff9b::1.1.1.1",
        "::ffff:1.1.1.1"}) {
    EXPECT_EQ(kind_of_inner(*ip_address_of(address)), nullptr) << address;
    EXPECT_EQ(refusal({}, "https://hooks.example.com", address), "") << address;
  }
}

TEST(AddressRules, NameTheRefusedAddressAndWhoCanAllowIt) {
  const auto rules = AddressRules();
  const auto checked =
      rules.check(*receiver_of("https://hooks.internal/a"), *ip_address_of("169.254.169.254"));

  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::kRefused);
  EXPECT_EQ(checked.error().what,
            "notifications to hooks.internal (169.254.169.254) are not allowed, because it is in "
            "the local link, where clouds keep their metadata");
  EXPECT_EQ(checked.error().advice,
            "an administrator can allow it: notify.allow, as in \"hooks.internal:443\"");
}

TEST(AddressRules, AdviseAnExceptionThatAllowsTheAddress) {
  const struct {
    const char* url;
    const char* address;
    const char* exception;
  } cases[] = {
      {"https://hooks.internal:8443/a", "10.1.2.3", "hooks.internal:8443"},
      {"https://10.1.2.3/a", "10.1.2.3", "10.1.2.3:443"},
      {"https://[fd00::1]:8443/", "fd00::1", "[fd00::1]:8443"},
      {"https://[2606:4700::1111]:8443/", "2606:4700::1111", "[2606:4700::1111]:8443"},
      {"https://[::ffff:127.0.0.1]:21110/", "::ffff:127.0.0.1", "[::ffff:127.0.0.1]:21110"},
  };
  for (const auto& [url, address, exception] : cases) {
    const auto checked = AddressRules().check(*receiver_of(url), *ip_address_of(address));

    ASSERT_FALSE(checked) << url;
    EXPECT_TRUE(checked.error().advice.ends_with("\"" + std::string(exception) + "\""))
        << checked.error().advice;
    EXPECT_EQ(refusal({exception}, url, address), "") << url;
  }
}

TEST(AddressRules, AllowOnlyTheExceptionsOfTheAdmin) {
  const struct {
    Texts allow;
    const char* url;
    const char* address;
    bool allowed;
  } cases[] = {
      {{"hooks.internal"}, "https://hooks.internal/a", "10.1.2.3", true},
      {{"Hooks.Internal"}, "https://HOOKS.internal/a", "10.1.2.3", true},
      {{"hooks.internal"}, "https://hooks.internal:8443/a", "10.1.2.3", false},
      {{"hooks.internal:8443"}, "https://hooks.internal:8443/a", "10.1.2.3", true},
      {{"hooks.internal:8443"}, "https://hooks.internal/a", "10.1.2.3", false},
      {{"hooks.internal:*"}, "https://hooks.internal:1/a", "127.0.0.1", true},
      {{"hooks.internal"}, "https://other.internal", "10.1.2.3", false},
      {{"hooks.internal"}, "https://x.hooks.internal", "10.1.2.3", false},
      {{"10.1.2.0/24"}, "https://any.example.com", "10.1.2.255", true},
      {{"10.1.2.0/24"}, "https://any.example.com", "10.1.3.0", false},
      {{"10.1.2.0/23"}, "https://any.example.com", "10.1.3.0", true},
      {{"10.1.2.0/24"}, "https://any.example.com", "::ffff:10.1.2.3", true},
      {{"10.1.2.0/24:8443"}, "https://any.example.com:8443", "10.1.2.3", true},
      {{"10.1.2.0/24:8443"}, "https://any.example.com", "10.1.2.3", false},
      {{"127.0.0.1"}, "https://127.0.0.1", "127.0.0.1", true},
      {{"127.0.0.1"}, "https://127.0.0.1", "127.0.0.2", false},
      {{"0.0.0.0/0"}, "https://any.example.com", "10.1.2.3", true},
      {{"0.0.0.0/0"}, "https://any.example.com", "fc00::1", false},
      {{"::1"}, "https://[::1]", "::1", true},
      {{"[::1]:8443"}, "https://[::1]:8443", "::1", true},
      {{"[::1]:8443"}, "https://[::1]", "::1", false},
      {{"fc00::/7"}, "https://any.example.com", "fd12::1", true},
      {{"[fc00::]/7:8443"}, "https://any.example.com:8443", "fd12::1", true},
      {{"a.b", "hooks.internal"}, "https://hooks.internal", "10.1.2.3", true},
      // A port of a public address needs an exception, too.
      {{}, "https://hooks.example.com:8443", "1.1.1.1", false},
      {{"hooks.example.com:8443"}, "https://hooks.example.com:8443", "1.1.1.1", true},
      {{}, "https://hooks.example.com:443", "1.1.1.1", true},
      {{}, "https://hooks.example.com:80", "1.1.1.1", false},
  };
  for (const auto& [allow, url, address, allowed] : cases) {
    const std::string message = refusal(allow, url, address);
    EXPECT_EQ(message.empty(), allowed)
        << (allow.empty() ? "-" : allow.front()) << " " << url << " " << address << ": " << message;
  }
}

TEST(AddressRules, HaveHttpOnlyWhereItIsAllowed) {
  EXPECT_EQ(refusal({}, "http://hooks.example.com", "1.1.1.1"), "notifications require https");
  EXPECT_EQ(refusal({"hooks.example.com"}, "http://hooks.example.com", "1.1.1.1"),
            "notifications require https");
  EXPECT_EQ(refusal({}, "http://hooks.example.com", "1.1.1.1", true), "");
  EXPECT_NE(refusal({}, "http://hooks.example.com", "10.0.0.1", true), "");
  EXPECT_NE(refusal({}, "http://hooks.example.com:443", "1.1.1.1", true), "");
}

TEST(AddressRules, NameAnInvalidException) {
  for (const char* text : {"", "a b", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/x", "host/8", "host:0",
                           "host:65536", "host:", "[::1", "::1/129", "https://host"}) {
    const auto rules = AddressRules::of({"fine", text}, false);
    ASSERT_FALSE(rules) << text;
    ASSERT_EQ(rules.error().faults.size(), 1U) << text;
    EXPECT_EQ(rules.error().faults[0].field, "notify.allow");
    EXPECT_NE(rules.error().faults[0].what.find("'" + std::string(text) + "'"), std::string::npos);
  }
  EXPECT_EQ(AddressRules::of({"10.0.0.0/33", "fine", "a b"}, false).error().faults.size(), 2U);
}

TEST(ReceiverUrl, IsParsed) {
  const struct {
    const char* url;
    Receiver receiver;
  } cases[] = {
      {"https://hooks.example.com", {true, "hooks.example.com", 443, "/"}},
      {"HTTPS://Hooks.Example.com/A/b%2Fc?x=1&y",
       {true, "hooks.example.com", 443, "/A/b%2Fc?x=1&y"}},
      {"https://hooks.example.com?x=1", {true, "hooks.example.com", 443, "/?x=1"}},
      {"http://10.0.0.1:8080/a", {false, "10.0.0.1", 8080, "/a"}},
      {"http://h", {false, "h", 80, "/"}},
      {"https://[::1]:8443/a", {true, "::1", 8443, "/a"}},
      {"https://[2001:db8::1]", {true, "2001:db8::1", 443, "/"}},
  };
  for (const auto& [url, receiver] : cases) {
    const auto read = receiver_of(url);
    ASSERT_TRUE(read) << url << ": " << read.error().what;
    EXPECT_EQ(*read, receiver) << url;
  }
}

TEST(ReceiverUrl, IsRefusedWhereItCouldMeanMoreThanOneThing) {
  for (const char* url : {"",
                          "hooks.example.com",
                          "ftp://h",
                          "https://",
                          "https:///a",
                          "https://user@h",
                          "https://user:secret@h/a",
                          "https://evil.com@h/",
                          "https://h:0",
                          "https://h:65536",
                          "https://h:",
                          "https://h:443x",
                          "https://h/a#b",
                          "https://h\\@evil.com",
                          "https://h/a\\b",
                          "https://h /a",
                          "https://h/a b",
                          "https://h/\r\nx: y",
                          "https://h/\xc3\xa9",
                          "https://[::1",
                          "https://[h]",
                          "https://::1",
                          "https://[::1]x",
                          "https://[127.0.0.1]",
                          "https://h%41",
                          "https://[fe80::1%25lo]"}) {
    const auto read = receiver_of(url);
    ASSERT_FALSE(read) << url;
    EXPECT_EQ(read.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(read.error().what.find("secret"), std::string::npos);
  }
  EXPECT_FALSE(receiver_of("https://h/" + std::string(2048, 'a')));
}

}  // namespace
}  // namespace muster::notify
