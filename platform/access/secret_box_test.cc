#include "access/secret_box.h"

#include <gtest/gtest.h>

#include "base/fake_random.h"

namespace muster::access {
namespace {

SecretBox::Key key_of(uint8_t byte) {
  SecretBox::Key key{};
  key.fill(byte);
  return key;
}

/// Returned for a value that does not open; no test value equals "kRefused".
std::string opened(const SecretBox& box, std::string_view sealed, std::string_view project = "team",
                   std::string_view name = "KEY") {
  const auto value = box.open(sealed, project, name);
  return value ? *value : std::string(to_string(value.error().code));
}

TEST(SecretBox, OpensWhatItSealed) {
  const SecretBox box(key_of(1));
  base::FakeRandom random;
  for (const std::string& value : {std::string("s3cret"), std::string(), std::string("\0\xff\n", 3),
                                   std::string(64 * 1024, 'x')}) {
    EXPECT_EQ(opened(box, box.seal(value, "team", "KEY", random)), value);
  }
}

TEST(SecretBox, RevealsOnlyTheLengthOfTheValue) {
  const SecretBox box(key_of(1));
  base::FakeRandom random;
  const std::string value = "a value that is long enough to be found again";

  const std::string sealed = box.seal(value, "team", "KEY", random);

  EXPECT_EQ(sealed.size(), 12 + value.size() + 16);
  for (size_t at = 0; at + 4 <= value.size(); ++at) {
    EXPECT_EQ(sealed.find(value.substr(at, 4)), std::string::npos) << at;
  }
}

TEST(SecretBox, SealsTheSameValueDifferentlyEachTime) {
  const SecretBox box(key_of(1));
  base::FakeRandom random;

  const std::string first = box.seal("s3cret", "team", "KEY", random);
  const std::string second = box.seal("s3cret", "team", "KEY", random);

  EXPECT_NE(first.substr(0, 12), second.substr(0, 12));
  EXPECT_NE(first.substr(12), second.substr(12));
}

TEST(SecretBox, DetectsAnyFlippedBit) {
  const SecretBox box(key_of(1));
  base::FakeRandom random;
  const std::string sealed = box.seal("s3cret", "team", "KEY", random);
  for (size_t at = 0; at < sealed.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = sealed;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      EXPECT_EQ(opened(box, changed), "refused") << "byte " << at << " bit " << bit;
    }
  }
}

TEST(SecretBox, DetectsTruncatedAndExtendedData) {
  const SecretBox box(key_of(1));
  base::FakeRandom random;
  const std::string sealed = box.seal("s3cret", "team", "KEY", random);

  for (size_t length = 0; length < sealed.size(); ++length) {
    EXPECT_EQ(opened(box, sealed.substr(0, length)), "refused") << length;
  }
  EXPECT_EQ(opened(box, sealed + '\0'), "refused");
  EXPECT_EQ(opened(box, sealed + sealed), "refused");
}

TEST(SecretBox, DoesNotOpenForAnotherProjectOrName) {
  const SecretBox box(key_of(1));
  base::FakeRandom random;
  const std::string sealed = box.seal("s3cret", "team", "KEY", random);

  EXPECT_EQ(opened(box, sealed, "team", "KEY"), "s3cret");
  EXPECT_EQ(opened(box, sealed, "other", "KEY"), "refused");
  EXPECT_EQ(opened(box, sealed, "team", "OTHER"), "refused");
  EXPECT_EQ(opened(box, sealed, "teamK", "EY"), "refused");
  EXPECT_EQ(opened(box, sealed, "", "teamKEY"), "refused");
}

TEST(SecretBox, DoesNotOpenWithAnotherKeyAndGivesAdvice) {
  base::FakeRandom random;
  const std::string sealed = SecretBox(key_of(1)).seal("s3cret", "team", "KEY", random);

  const auto value = SecretBox(key_of(2)).open(sealed, "team", "KEY");

  ASSERT_FALSE(value);
  EXPECT_EQ(
      value.error().to_string(),
      "secret 'KEY' of project 'team' cannot be opened: it was encrypted with another key, or "
      "is damaged\n"
      "  start the server with the key with which it was set, or set the secret again");
}

TEST(ParseKey, ReadsTheOutputOfKeyText) {
  base::FakeRandom random;
  const auto key = random.bytes<32>();

  EXPECT_EQ(*parse_key(key_text(key)), key);
  EXPECT_EQ(*parse_key("  \n" + key_text(key) + "\r\n"), key);
  EXPECT_EQ(*parse_key(std::string(64, 'A')), *parse_key(std::string(64, 'a')));
}

TEST(ParseKey, RefusesOtherTextsWithoutRepeatingThem) {
  const std::string digits(64, 'a');
  for (const std::string& text :
       {std::string(), std::string("  "), digits.substr(1), digits + "a", digits + " " + digits,
        digits.substr(1) + "g", "0x" + digits.substr(2), digits.substr(1) + '\0'}) {
    const auto key = parse_key(text);
    ASSERT_FALSE(key) << text;
    EXPECT_EQ(key.error().to_string(),
              "the key for secrets is not 64 hexadecimal digits\n"
              "  make one with: openssl rand -hex 32");
  }
}

}  // namespace
}  // namespace muster::access
