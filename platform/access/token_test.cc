#include "access/token.h"

#include <gtest/gtest.h>
#include <openssl/sha.h>

#include <set>

#include "base/fake_random.h"

namespace muster::access {
namespace {

using std::chrono::seconds;

TEST(MakeToken, IsThePrefixItsIdAndItsSecret) {
  base::FakeRandom random;

  const NewToken token = make_token(random);

  EXPECT_EQ(token.text.size(), 7u + 12 + 1 + 52);
  EXPECT_EQ(token.text.substr(0, 20), "muster_" + token.id + "_");
  EXPECT_EQ(token.text.find_first_not_of("abcdefghijklmnopqrstuvwxyz234567_"), std::string::npos);
}

TEST(MakeToken, KeepsOfItsSecretTheHashAlone) {
  base::FakeRandom random;

  const NewToken token = make_token(random);

  const std::string secret = token.text.substr(20);
  std::string expected(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(secret.data()), secret.size(),
         reinterpret_cast<unsigned char*>(expected.data()));
  EXPECT_EQ(token.hash, expected);
}

TEST(MakeToken, MakesNoneTwice) {
  base::FakeRandom random(7);
  std::set<std::string> ids;
  std::set<std::string> hashes;
  for (int i = 0; i < 1000; ++i) {
    const NewToken token = make_token(random);
    ids.insert(token.id);
    hashes.insert(token.hash);
  }
  EXPECT_EQ(ids.size(), 1000u);
  EXPECT_EQ(hashes.size(), 1000u);
}

TEST(ParseToken, FindsThePartsOfWhatWasMade) {
  base::FakeRandom random;
  const NewToken token = make_token(random);

  const auto parts = parse_token(token.text);

  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->id, token.id);
  EXPECT_TRUE(matches(Token{.hash = token.hash}, parts->secret));
}

TEST(ParseToken, TakesNothingElse) {
  const std::string id(12, 'a');
  const std::string secret(52, 'b');
  ASSERT_TRUE(parse_token("muster_" + id + "_" + secret));
  const std::vector<std::string> others{
      "",
      "muster",
      "muster_",
      "muster__",
      id,
      "muster_" + id,
      "muster_" + id + "_",
      "muster_" + id + "_" + secret + "b",
      "muster_" + id + "_" + secret.substr(1),
      "muster_a" + id + "_" + secret,
      "muster_" + id + secret + "b",
      "muster-" + id + "_" + secret,
      "Muster_" + id + "_" + secret,
      " muster_" + id + "_" + secret,
      "muster_" + id + "_" + secret + "\n",
      "muster_" + std::string(12, 'A') + "_" + secret,
      "muster_" + std::string(12, '_') + "_" + secret,
      "muster_" + id + "_" + std::string(52, 'B'),
      "muster_" + id + "_" + std::string(52, '1'),
      "muster_" + id + "_" + std::string(52, '8'),
      "muster_" + id + "_" + std::string(52, '\0'),
      "muster_" + id + "_" + std::string(51, 'b') + "=",
      std::string(1 << 20, 'a'),
  };
  for (const std::string& text : others) EXPECT_FALSE(parse_token(text)) << text.substr(0, 100);
}

TEST(Matches, TakesTheSecretItWasMadeWithAndNoOther) {
  base::FakeRandom random;
  const NewToken made = make_token(random);
  const Token token{.hash = made.hash};
  const std::string secret = made.text.substr(20);

  EXPECT_TRUE(matches(token, secret));
  for (size_t i = 0; i < secret.size(); ++i) {
    std::string other = secret;
    other[i] = other[i] == 'a' ? 'b' : 'a';
    EXPECT_FALSE(matches(token, other)) << i;
  }
  EXPECT_FALSE(matches(token, ""));
}

TEST(Matches, ATokenWithoutAHashIsNobodys) {
  EXPECT_FALSE(matches(Token{}, ""));
  EXPECT_FALSE(matches(Token{.hash = std::string(32, '\0')}, ""));
}

TEST(IsExpired, FromTheMomentOn) {
  const base::Time expires{seconds(100)};
  EXPECT_FALSE(is_expired({.expires = expires}, expires - seconds(1)));
  EXPECT_TRUE(is_expired({.expires = expires}, expires));
  EXPECT_TRUE(is_expired({.expires = expires}, expires + seconds(1)));
  EXPECT_FALSE(is_expired({}, expires));
}

TEST(TokenKind, IsReadBackByItsName) {
  for (const TokenKind kind : {TokenKind::kInvitation, TokenKind::kSession, TokenKind::kApi}) {
    EXPECT_EQ(token_kind_of(to_string(kind)), kind);
  }
  EXPECT_EQ(token_kind_of("password"), std::nullopt);
}

}  // namespace
}  // namespace muster::access
