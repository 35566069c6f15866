#include "access/token.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "access/account_table.h"

namespace muster::access {

namespace {

constexpr std::string_view kPrefix = "muster_";
constexpr size_t kIdLength = 12;
constexpr size_t kSecretLength = 52;

constexpr std::array<record::Named<TokenKind>, 3> kTokenKindNames{{
    {TokenKind::kInvitation, "invitation"},
    {TokenKind::kSession, "session"},
    {TokenKind::kApi, "api"},
}};

bool is_base32(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '2' && letter <= '7');
  });
}

std::string sha256(std::string_view bytes) {
  std::string digest(32, '\0');
  // Fails only where memory or the library itself does: no answer would be a safe one.
  if (EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()),
                 nullptr, EVP_sha256(), nullptr) != 1) {
    std::abort();
  }
  return digest;
}

}  // namespace

record::Words<TokenKind> words_of(const TokenKind*) {
  return {.schema = "TokenKind",
          .values = kTokenKindNames,
          .help =
              "An `invitation` permits one login, a `session` was created by a login, and `api` "
              "is for programs."};
}

std::string_view to_string(TokenKind kind) {
  return record::word_for(kind);
}
std::optional<TokenKind> token_kind_of(std::string_view name) {
  return record::meant_by<TokenKind>(name);
}

bool is_expired(const Token& token, base::Time now) {
  return token.expires && now >= *token.expires;
}

NewToken make_token(base::RandomSource& random) {
  std::string id = base::random_name(random, kIdLength);
  const std::string secret = base::random_name(random, kSecretLength);
  std::string text = std::string(kPrefix) + id + "_" + secret;
  return {.text = std::move(text), .id = std::move(id), .hash = sha256(secret)};
}

std::optional<TokenText> parse_token(std::string_view text) {
  constexpr size_t kSecretAt = kPrefix.size() + kIdLength + 1;
  if (text.size() != kSecretAt + kSecretLength || !text.starts_with(kPrefix) ||
      text[kSecretAt - 1] != '_') {
    return std::nullopt;
  }
  const std::string_view id = text.substr(kPrefix.size(), kIdLength);
  const std::string_view secret = text.substr(kSecretAt);
  if (!is_base32(id) || !is_base32(secret)) return std::nullopt;
  return TokenText{.id = std::string(id), .secret = std::string(secret)};
}

bool matches(const Token& token, std::string_view secret) {
  const std::string hash = sha256(secret);
  return token.hash.size() == hash.size() &&
         CRYPTO_memcmp(token.hash.data(), hash.data(), hash.size()) == 0;
}

}  // namespace muster::access
