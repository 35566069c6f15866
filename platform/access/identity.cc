#include "access/identity.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "access/account_table.h"

namespace muster::access {

namespace {

bool is_good_for(const std::vector<std::string>& token_projects,
                 const std::vector<std::string>& line) {
  if (token_projects.empty()) return true;
  return std::any_of(line.begin(), line.end(), [&](const std::string& project) {
    return std::find(token_projects.begin(), token_projects.end(), project) != token_projects.end();
  });
}

}  // namespace

Role Identity::over_server() const {
  // Changes to the server affect every project, so a token for some projects does not permit them.
  if (token_kind == TokenKind::kInvitation || !token_projects.empty()) return Role::kNone;
  return std::min(server_role, ceiling);
}

std::string server_role_text(const Identity& identity) {
  const Role role = identity.over_server();
  const std::string text = "this token of '" + identity.user + "' has ";
  if (role == Role::kNone) return text + "no server role";
  return text + "the server role '" + std::string(to_string(role)) + "'";
}

Role Identity::in_project(const std::vector<std::string>& line) const {
  if (token_kind == TokenKind::kInvitation || !is_good_for(token_projects, line)) {
    return Role::kNone;
  }
  Role best = server_role;
  for (const std::string& project : line) {
    const auto found = projects.find(project);
    if (found != projects.end()) best = std::max(best, found->second);
  }
  return std::min(best, ceiling);
}

Identity local_identity(std::string user) {
  return {.user = std::move(user), .server_role = Role::kAdmin, .address = "local"};
}

Identity identity_of(const User& user, const Token& token, std::string address) {
  return {.user = user.name,
          .server_role = user.server_role,
          .projects = user.projects,
          .ceiling = token.ceiling,
          .token_projects = token.projects,
          .token = token.id,
          .token_kind = token.kind,
          .address = std::move(address)};
}

namespace {

constexpr std::array<record::Named<Role>, 4> kRoleNames{{
    {Role::kNone, "none"},
    {Role::kViewer, "viewer"},
    {Role::kMember, "member"},
    {Role::kAdmin, "admin"},
}};

}  // namespace

record::Words<Role> words_of(const Role*) {
  return {.schema = "Role",
          .values = kRoleNames,
          .help =
              "Each role includes the one before it: a viewer reads, a member submits jobs, an "
              "admin sets members, secrets and quotas."};
}

std::string_view to_string(Role role) {
  return record::word_for(role);
}
std::optional<Role> role_of(std::string_view name) {
  return record::meant_by<Role>(name);
}

namespace {

using base::Fault;

constexpr size_t kLongestName = 64;

bool is_letter_or_digit(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
}

bool is_of_a_name(char letter) {
  return is_letter_or_digit(letter) || std::string_view("._-@").find(letter) != std::string::npos;
}

void check_name(const std::string& name, std::vector<Fault>& faults) {
  const auto fault = [&](std::string what) { faults.push_back({"name", std::move(what)}); };
  if (name.empty()) return fault("is missing");
  if (name.size() > kLongestName) {
    fault("is " + std::to_string(name.size()) + " characters long; at most " +
          std::to_string(kLongestName) + " are allowed");
  }
  if (!std::all_of(name.begin(), name.end(), is_of_a_name)) {
    fault("may contain only a-z, 0-9, '.', '_', '-' and '@'");
  }
  if (is_of_a_name(name.front()) && !is_letter_or_digit(name.front())) {
    fault("must begin with a letter or digit");
  }
}

bool is_of_an_account(char letter) {
  return is_letter_or_digit(letter) || (letter >= 'A' && letter <= 'Z') || letter == '_' ||
         letter == '-' || letter == '.';
}

void check_account(const std::string& account, std::vector<Fault>& faults) {
  constexpr size_t kLongestAccount = 32;
  if (account.empty()) return;
  const auto fault = [&](std::string what) { faults.push_back({"account", std::move(what)}); };
  if (account == "root") return fault("is root, and jobs may not run as root");
  if (account.size() > kLongestAccount) {
    fault("is " + std::to_string(account.size()) + " characters long; at most " +
          std::to_string(kLongestAccount) + " are allowed");
  }
  const bool has_digits_only = std::all_of(
      account.begin(), account.end(), [](char letter) { return letter >= '0' && letter <= '9'; });
  if (!std::all_of(account.begin(), account.end(), is_of_an_account) || account.front() == '-' ||
      has_digits_only) {
    fault("'" + account + "' is not the name of a Unix account");
  }
}

}  // namespace

std::vector<Fault> validate_user(const User& user) {
  std::vector<Fault> faults;
  check_name(user.name, faults);
  check_account(user.account, faults);
  for (const auto& [project, role] : user.projects) {
    if (project.empty()) faults.push_back({"projects", "has a role in a project without a name"});
    if (role == Role::kNone) {
      faults.push_back({"projects." + project,
                        "is invalid: leave the project out instead of giving it the role none"});
    }
  }
  return faults;
}

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
  // This fails only if memory or the library fails; no result would be safe to use.
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
