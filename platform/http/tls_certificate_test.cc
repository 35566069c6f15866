#include <gtest/gtest.h>

#include "http/tls.h"

namespace muster::http {
namespace {

using base::ErrorCode;

constexpr base::Time kNow{std::chrono::seconds{1'700'000'000}};
constexpr std::chrono::hours kYear{24 * 365};

TEST(SelfSigned, IsAnIdentityThatAServerCanHave) {
  const auto identity = make_self_signed({"muster.example.com", "10.0.0.1", "::1"}, kNow, kYear);

  ASSERT_TRUE(identity) << identity.error().to_string();
  EXPECT_TRUE(identity->certificate.starts_with("-----BEGIN CERTIFICATE-----\n"));
  EXPECT_TRUE(identity->key.starts_with("-----BEGIN PRIVATE KEY-----\n"));
  EXPECT_TRUE(check_identity(*identity));
}

TEST(SelfSigned, IsAnotherEachTime) {
  const auto one = make_self_signed({"a"}, kNow, kYear);
  const auto other = make_self_signed({"a"}, kNow, kYear);

  EXPECT_NE(one->key, other->key);
  EXPECT_NE(*fingerprint_of(one->certificate), *fingerprint_of(other->certificate));
}

TEST(SelfSigned, RefusesNamesThatNoHostHas) {
  for (const char* name : {"", "a,DNS:b", "a b", "a\n", "a=b", "\xC3\xA4"}) {
    const auto identity = make_self_signed({"good", name}, kNow, kYear);
    ASSERT_FALSE(identity) << name;
    EXPECT_EQ(identity.error().code, ErrorCode::kInvalid);
  }
  EXPECT_EQ(make_self_signed({}, kNow, kYear).error().what,
            "a certificate needs a host name or an address");
}

TEST(CheckIdentity, TellsWhatIsWrong) {
  const auto one = make_self_signed({"a"}, kNow, kYear);
  const auto other = make_self_signed({"a"}, kNow, kYear);
  const auto fault_of = [](const TlsIdentity& identity) {
    const auto checked = check_identity(identity);
    return checked ? "" : checked.error().what;
  };

  EXPECT_EQ(fault_of({.certificate = "", .key = one->key}),
            "the server's certificate cannot be read");
  EXPECT_EQ(fault_of({.certificate = one->key, .key = one->key}),
            "the server's certificate cannot be read");
  EXPECT_EQ(fault_of({.certificate = one->certificate, .key = "rubbish"}),
            "the key of the server's certificate cannot be read, or has a pass phrase");
  EXPECT_EQ(fault_of({.certificate = one->certificate, .key = other->key}),
            "the key is not that of the server's certificate");
}

TEST(CheckIdentity, TakesAChain) {
  const auto one = make_self_signed({"a"}, kNow, kYear);
  const auto other = make_self_signed({"b"}, kNow, kYear);

  EXPECT_TRUE(
      check_identity({.certificate = one->certificate + other->certificate, .key = one->key}));
  EXPECT_EQ(*fingerprint_of(one->certificate + other->certificate),
            *fingerprint_of(one->certificate));
}

TEST(Fingerprint, IsOfTheCertificateAndNothingElse) {
  EXPECT_EQ(fingerprint_of("rubbish").error().code, ErrorCode::kInvalid);
}

TEST(Fingerprint, IsReadAsPeopleWriteIt) {
  const std::string digits = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
  const std::string readable = readable_fingerprint(digits);

  EXPECT_EQ(readable.substr(0, 8), "00:11:22");
  EXPECT_EQ(readable.substr(readable.size() - 8), "DD:EE:FF");
  for (const std::string& text :
       {digits, readable, "sha256:" + digits, "SHA256:" + readable, " " + readable + "\n"}) {
    const auto parsed = parse_fingerprint(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(*parsed, digits);
  }
}

TEST(Fingerprint, RefusesWhatIsNone) {
  EXPECT_EQ(parse_fingerprint("AB:CD").error().what,
            "'AB:CD' is no SHA-256 fingerprint: it has 4 hexadecimal digits");
  EXPECT_EQ(parse_fingerprint("no").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(parse_fingerprint("").error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace muster::http
