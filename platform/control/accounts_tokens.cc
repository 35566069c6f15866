// Tokens: made, used up, listed and revoked.
#include <algorithm>

#include "control/account_changes.h"
#include "control/accounts.h"
#include "control/unknown_name.h"

namespace muster::control {

using access::Actor;
using access::Identity;
using access::Token;
using access::TokenKind;
using base::Error;
using base::ErrorCode;
using base::Fault;
using std::chrono::seconds;

namespace {

// Far beyond what anybody needs, and far from where nanoseconds since 1970 end.
constexpr seconds kLongestLifetime = std::chrono::hours(24 * 365 * 100);
constexpr size_t kLongestDescription = 200;
constexpr size_t kMostProjects = 100;
constexpr int64_t kMostTokens = 1000;  // of one user: they are all kept in memory

std::vector<Fault> token_faults(const TokenWish& wish) {
  std::vector<Fault> faults;
  if (wish.lifetime && (*wish.lifetime < seconds(1) || *wish.lifetime > kLongestLifetime)) {
    faults.push_back({"lifetime", "give a time between 1 second and 100 years"});
  }
  if (wish.description.size() > kLongestDescription) {
    faults.push_back(
        {"description", "is longer than " + std::to_string(kLongestDescription) + " bytes"});
  }
  if (wish.ceiling == access::Role::kNone) {
    faults.push_back({"ceiling",
                      "a token that may do nothing is none; give viewer, member or "
                      "admin"});
  }
  if (wish.projects.size() > kMostProjects) {
    faults.push_back({"projects", "are more than " + std::to_string(kMostProjects)});
  }
  return faults;
}

}  // namespace

Result<IssuedToken> Accounts::issue(const TokenWish& wish, const Actor& by) {
  MUSTER_CHECK(user(wish.user));
  return make(wish, std::nullopt, "token.create", {}, by);
}

Result<IssuedToken> Accounts::log_in(const Identity& who, const std::string& description,
                                     seconds lifetime, const Actor& by) {
  const auto found = tokens_.find(who.token);
  if (found == tokens_.end()) return not_valid();
  const Token& shown = found->second;
  // What a program's token is made into stays one: a session may make tokens that outlive it.
  const bool is_program = shown.kind == TokenKind::kApi;
  TokenWish wish{.user = shown.user,
                 .kind = is_program ? TokenKind::kApi : TokenKind::kSession,
                 .description = description,
                 .ceiling = shown.ceiling,
                 .projects = shown.projects,
                 .lifetime = lifetime};
  // A session is worth no more than what it was made from, and lives no longer; an invitation's own
  // short time is for logging in alone.
  const bool is_invitation = shown.kind == TokenKind::kInvitation;
  const auto until = is_invitation ? std::nullopt : shown.expires;
  std::vector<std::string> gone;
  if (is_invitation) gone.push_back(shown.id);
  return make(wish, until, "token.login", std::move(gone), by);
}

Result<void> Accounts::check_room_for_token(const std::string& user) const {
  const base::Time now = parts_.clock.now();
  const auto count = std::count_if(tokens_.begin(), tokens_.end(), [&](const auto& entry) {
    return entry.second.user == user && !access::is_expired(entry.second, now);
  });
  if (count < kMostTokens) return {};
  return Error{.code = ErrorCode::kExhausted,
               .what = "user '" + user + "' has " + std::to_string(count) + " tokens already",
               .advice =
                   "muster token list shows them, muster token revoke ends those that are "
                   "not needed"};
}

/// `until`: it expires then at the latest; `gone`: tokens that it takes the place of.
Result<IssuedToken> Accounts::make(const TokenWish& wish, std::optional<base::Time> until,
                                   const std::string& action, std::vector<std::string> gone,
                                   const Actor& by) {
  if (auto faults = token_faults(wish); !faults.empty()) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "no such token can be made",
                 .faults = std::move(faults)};
  }
  MUSTER_CHECK(check_room_for_token(wish.user));
  access::NewToken made = access::make_token(parts_.random);
  while (tokens_.contains(made.id)) made = access::make_token(parts_.random);

  Token token{.id = std::move(made.id),
              .user = wish.user,
              .kind = wish.kind,
              .description = wish.description,
              .ceiling = wish.ceiling,
              .projects = wish.projects,
              .created = parts_.clock.now(),
              .expires = until,
              .hash = std::move(made.hash)};
  if (wish.lifetime) {
    const base::Time end = token.created + *wish.lifetime;
    token.expires = until ? std::min(*until, end) : end;
  }
  const Token* const none = nullptr;
  MUSTER_CHECK(keep({.tokens = {token},
                     .removed_tokens = gone,
                     .audit = {record(by, action, token.id, changes_of(none, &token))}}));
  for (const std::string& id : gone) tokens_.erase(id);
  tokens_[token.id] = token;
  return IssuedToken{.token = std::move(token), .text = std::move(made.text)};
}

std::vector<Token> Accounts::tokens(const std::optional<std::string>& user) const {
  std::vector<Token> tokens;
  for (const auto& [id, token] : tokens_) {
    if (!user || token.user == *user) tokens.push_back(token);
  }
  std::stable_sort(tokens.begin(), tokens.end(), [](const Token& left, const Token& right) {
    return left.created > right.created;
  });
  return tokens;
}

Result<Token> Accounts::token(const std::string& id) const {
  const auto found = tokens_.find(id);
  if (found != tokens_.end()) return found->second;
  // Without the nearest: it may be somebody else's.
  return unknown_name("token", id, {}, "muster token list shows them");
}

Result<void> Accounts::revoke(const std::string& id, const Actor& by) {
  MUSTER_TRY(const Token before, token(id));
  const Token* const none = nullptr;
  MUSTER_CHECK(keep({.removed_tokens = {id},
                     .audit = {record(by, "token.revoke", id, changes_of(&before, none))}}));
  tokens_.erase(id);
  return {};
}

}  // namespace muster::control
