// Who a caller is and what it may do: roles, the users that have them, the tokens that users log in
// with, and the identity of the caller of one request.
//
// Callers authenticate by tokens; there are no passwords.
//
//   muster_ID_SECRET    ID: 12 characters of base 32, which name the token and are no secret
//                       SECRET: 52 characters of base 32: 260 random bits
//
// Muster stores SHA-256(SECRET). A fast hash is enough, because 260 random bits cannot be guessed.
//
// Pure: time and randomness come in as arguments.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"

namespace muster::access {

/// Ordered: each role includes the one before it.
enum class Role {
  kNone,
  kViewer,  ///< reads
  kMember,  ///< submits, stops and deletes jobs, uses secrets
  kAdmin,   ///< sets secrets and members of the project; of the server: everything
};

/// "none", "viewer", "member", "admin".
std::string_view to_string(Role role);
std::optional<Role> role_of(std::string_view name);

struct User {
  std::string name;
  Role server_role = Role::kNone;        ///< in every project; kAdmin: and over the server itself
  std::map<std::string, Role> projects;  ///< in this project and its subprojects
  bool disabled = false;                 ///< the server refuses the user's tokens
  /// The Unix account under which the process engine runs the user's jobs; empty: ids of its own.
  std::string account;
  base::Time created;

  bool operator==(const User&) const = default;
};

/// Every fault of the user. A name has 1 to 64 of a-z, 0-9, '.', '_', '-' and '@', and begins with
/// a letter or digit. An account has a name that Unix accounts can have, and is not root. The caller
/// checks that the projects and the account exist.
std::vector<base::Fault> validate_user(const User& user);

// --- tokens

enum class TokenKind {
  kInvitation,  ///< permits one login and nothing else
  kSession,     ///< made by `muster login`
  kApi,         ///< made by `muster token create`, or by a login with such a token; for programs
};

std::string_view to_string(TokenKind kind);  ///< "invitation", "session", "api"
std::optional<TokenKind> token_kind_of(std::string_view name);

struct Token {
  std::string id;
  std::string user;
  TokenKind kind = TokenKind::kApi;
  std::string description;
  /// The highest role that the token gives, even if the user's is higher.
  Role ceiling = Role::kAdmin;
  /// Valid for these projects and their subprojects; empty: all projects of its user.
  std::vector<std::string> projects;
  base::Time created;
  std::optional<base::Time> expires;
  std::optional<base::Time> last_used;  ///< stored with a delay of up to a minute
  std::string last_address;
  std::string hash;  ///< SHA-256 of the secret, 32 bytes; never leaves the server

  bool operator==(const Token&) const = default;
};

bool is_expired(const Token& token, base::Time now);

struct NewToken {
  std::string text;  ///< shown to the user once, and not stored
  std::string id;
  std::string hash;
};

NewToken make_token(base::RandomSource& random);

/// The parts of a token's text; nothing if the text is not a token.
struct TokenText {
  std::string id;
  std::string secret;
};
std::optional<TokenText> parse_token(std::string_view text);

/// Whether `secret` is the token's. Takes the same time for every secret.
bool matches(const Token& token, std::string_view secret);

// --- the caller of a request

/// Detail of an error: the caller is not authenticated and has to log in.
struct NotLoggedIn : base::ErrorDetail {};

struct Identity {
  std::string user;
  Role server_role = Role::kNone;
  std::map<std::string, Role> projects;
  Role ceiling = Role::kAdmin;  ///< of the caller's token
  /// The token is valid only for these projects; empty: all.
  std::vector<std::string> token_projects;
  std::string token;  ///< its id; empty over the unix socket
  TokenKind token_kind = TokenKind::kSession;
  std::string address;  ///< "10.0.0.7", or "local" over the unix socket

  /// The role over the server itself: nodes, users, other users' tokens.
  Role over_server() const;
  /// `line`: the project, its parent, and so on to the top. A role also holds in projects below.
  Role in_project(const std::vector<std::string>& line) const;
  /// Whether the caller may see every project.
  bool sees_everything() const { return over_server() >= Role::kViewer; }

  bool operator==(const Identity&) const = default;
};

/// The caller over the unix socket: the owner of the server, who may do everything.
Identity local_identity(std::string user);

Identity identity_of(const User& user, const Token& token, std::string address);

/// "this token of 'ben' has no server role", "this token of 'ben' has the server role 'viewer'".
std::string server_role_text(const Identity& identity);

}  // namespace muster::access
