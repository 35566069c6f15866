// Tokens: what a caller shows to be taken for a user.
//
//   muster_ID_SECRET    ID: 12 characters of base 32, which name the token and are no secret
//                       SECRET: 52 such characters: 260 random bits
//
// Only SHA-256(SECRET) is kept. A fast hash does: so many random bits cannot be guessed, however
// fast one may try.
//
// Pure: time and randomness come in as arguments.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/role.h"
#include "base/clock.h"
#include "base/random.h"

namespace muster::access {

enum class TokenKind {
  kInvitation,  ///< good for one login and nothing else
  kSession,     ///< made by `muster login`
  kApi,         ///< made by `muster token create`, or by a login with such a one: for programs
};

std::string_view to_string(TokenKind kind);  ///< "invitation", "session", "api"
std::optional<TokenKind> token_kind_of(std::string_view name);

struct Token {
  std::string id;
  std::string user;
  TokenKind kind = TokenKind::kApi;
  std::string description;
  Role ceiling = Role::kAdmin;        ///< it can do no more than this, whatever its user may do
  std::vector<std::string> projects;  ///< only these and those below them; empty: all of its user's
  base::Time created;
  std::optional<base::Time> expires;
  std::optional<base::Time> last_used;  ///< kept with a delay of up to a minute
  std::string last_address;
  std::string hash;  ///< SHA-256 of the secret part, 32 bytes; never leaves the server

  bool operator==(const Token&) const = default;
};

bool is_expired(const Token& token, base::Time now);

struct NewToken {
  std::string text;  ///< shown once, and kept nowhere
  std::string id;
  std::string hash;
};

NewToken make_token(base::RandomSource& random);

/// The parts of a token's text; nothing where it is none.
struct TokenText {
  std::string id;
  std::string secret;
};
std::optional<TokenText> parse_token(std::string_view text);

/// Whether `secret` is that of `token`; takes as long for a near miss as for any other.
bool matches(const Token& token, std::string_view secret);

}  // namespace muster::access
