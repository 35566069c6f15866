#include "bootstrap/crypto.h"

#include <gtest/gtest.h>

namespace muster::collective {
namespace {

TEST(Crypto, MatchesTheExampleOfTheStandard) {  // FIPS 180-4, example "abc"
  EXPECT_EQ(to_hex(sha256(view_of("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Crypto, ProofsDependOnTheKeyAndOnTheBordersOfTheParts) {
  const Digest proof = hmac(view_of("key"), {view_of("ab"), view_of("c")});
  EXPECT_EQ(proof, hmac(view_of("key"), {view_of("ab"), view_of("c")}));
  EXPECT_NE(proof, hmac(view_of("other"), {view_of("ab"), view_of("c")}));
  EXPECT_NE(proof, hmac(view_of("key"), {view_of("a"), view_of("bc")}));
  EXPECT_NE(proof, hmac(view_of("key"), {view_of("abc")}));
}

TEST(Crypto, ComparesWholeDigests) {
  const Digest digest = sha256(view_of("abc"));
  EXPECT_TRUE(equal_in_constant_time(digest, digest));
  EXPECT_FALSE(equal_in_constant_time(digest, sha256(view_of("abd"))));
  EXPECT_FALSE(equal_in_constant_time(digest, ByteView(digest).first(31)));
  EXPECT_FALSE(equal_in_constant_time(digest, {}));
}

TEST(Crypto, ReadsHexInEitherCase) {
  EXPECT_EQ(from_hex("00fFA5"), (Bytes{std::byte{0}, std::byte{0xff}, std::byte{0xa5}}));
  EXPECT_EQ(from_hex("abc"), std::nullopt);
  EXPECT_EQ(from_hex("0g"), std::nullopt);
}

TEST(Crypto, RejectsAWeakKeyWithoutRepeatingIt) {
  struct Row {
    const char* key;
    const char* message;
  };
  for (const Row& row : {Row{"", "the rendezvous has no key"},
                         {"secret", "the rendezvous key is not hex"},
                         {"00112233", "the rendezvous key has 4 bytes, and needs 16 or more"}}) {
    const auto key = parse_key(row.key);
    ASSERT_FALSE(key);
    EXPECT_EQ(key.error().message, row.message);
    EXPECT_NE(key.error().advice.find("MUSTER_RENDEZVOUS_KEY"), std::string::npos);
  }
}

}  // namespace
}  // namespace muster::collective
