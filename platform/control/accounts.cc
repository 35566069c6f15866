#include "control/accounts.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "control/account_changes.h"
#include "control/unknown_name.h"

namespace muster::control {

using access::Actor;
using access::AuditRecord;
using access::FieldChange;
using access::Identity;
using access::Token;
using access::User;
using base::Error;
using base::ErrorCode;

namespace {

Error faulty(const User& user, std::vector<base::Fault> faults) {
  return {.code = ErrorCode::kInvalid,
          .what = "user '" + user.name + "' cannot be kept as it is",
          .faults = std::move(faults)};
}

/// Where only somebody's role in one project has changed, the record is one of that project.
std::string project_of(const std::vector<FieldChange>& changes) {
  constexpr std::string_view kProjects = "projects.";
  if (changes.size() != 1 || !changes.front().field.starts_with(kProjects)) return "";
  return changes.front().field.substr(kProjects.size());
}

}  // namespace

void Accounts::load(std::vector<User> users, std::vector<Token> tokens,
                    std::vector<access::Secret> secrets) {
  for (User& user : users) {
    std::string name = user.name;
    users_.emplace(std::move(name), std::move(user));
  }
  for (Token& token : tokens) {
    std::string id = token.id;
    tokens_.emplace(std::move(id), std::move(token));
  }
  for (access::Secret& secret : secrets) {
    store::SecretName name{secret.project, secret.name};
    secrets_.emplace(std::move(name), std::move(secret));
  }
  drop_long_expired();
}

Error Accounts::not_valid() {
  return {.code = ErrorCode::kRefused,
          .what = "the token is not valid",
          .advice = "muster login takes a new one",
          .detail = std::make_shared<const access::NotLoggedIn>()};
}

Result<Identity> Accounts::identify(std::string_view token_text, const std::string& address) {
  const auto text = access::parse_token(token_text);
  if (!text) return not_valid();
  // A token that nobody has, in the place of one that is not there: so the hash is computed and
  // compared also for an unknown id, and the time tells nothing of which ids there are.
  static const Token kNobodys{.hash = std::string(32, '\0')};
  const auto found = tokens_.find(text->id);
  const Token& shown = found == tokens_.end() ? kNobodys : found->second;
  const bool is_right = access::matches(shown, text->secret);
  const auto user = users_.find(shown.user);
  if (!is_right || found == tokens_.end() || user == users_.end()) return not_valid();

  const base::Time now = parts_.clock.now();
  if (access::is_expired(shown, now)) {
    return Error{.code = ErrorCode::kRefused,
                 .what = "the token has expired at " + base::to_rfc3339(*shown.expires, 0),
                 .advice = "muster login takes a new one",
                 .detail = std::make_shared<const access::NotLoggedIn>()};
  }
  if (user->second.disabled) {
    return Error{.code = ErrorCode::kRefused,
                 .what = "user '" + shown.user + "' is disabled",
                 .advice = "ask an administrator of the server"};
  }
  note_use(found->second, address, now);
  return access::identity_of(user->second, shown, address);
}

void Accounts::note_use(Token& token, const std::string& address, base::Time now) {
  token.last_used = now;
  if (token.last_address != address) token.last_address = address;
  used_.insert(token.id);
  if (!use_timer_) keep_uses_soon();
}

void Accounts::keep_uses_soon() {
  use_timer_ = parts_.loop.after(options_.uses_kept_after, [this] {
    use_timer_ = {};
    const Result<void> kept = keep({});
    if (kept) return;
    base::log_warning("cannot keep when tokens were last used", {{"error", kept.error().what}});
    keep_uses_soon();
  });
}

/// Commits `batch`, and with it which tokens were used since the last time.
Result<void> Accounts::keep(store::Batch batch) {
  for (const std::string& id : used_) {
    const auto found = tokens_.find(id);
    const auto& leaving = batch.removed_tokens;
    const bool leaves = std::find(leaving.begin(), leaving.end(), id) != leaving.end();
    if (found != tokens_.end() && !leaves) batch.tokens.push_back(found->second);
  }
  if (batch.empty()) return {};
  MUSTER_CHECK(parts_.store.commit(batch));
  used_.clear();
  return {};
}

void Accounts::drop_long_expired() {
  const base::Time now = parts_.clock.now();
  std::vector<std::string> ids;
  for (const auto& [id, token] : tokens_) {
    if (token.expires && *token.expires + kExpiredAreKept <= now) ids.push_back(id);
  }
  if (!ids.empty()) {
    if (const Result<void> kept = keep({.removed_tokens = ids}); kept) {
      for (const std::string& id : ids) tokens_.erase(id);
    } else {
      base::log_warning("cannot drop expired tokens", {{"error", kept.error().what}});
    }
  }
  expiry_timer_ = parts_.loop.after(options_.expired_looked_for, [this] { drop_long_expired(); });
}

AuditRecord Accounts::record(const Actor& by, std::string action, std::string target,
                             std::vector<FieldChange> changes, std::string project) const {
  return {.time = parts_.clock.now(),
          .actor = by,
          .action = std::move(action),
          .target = std::move(target),
          .project = std::move(project),
          .changes = std::move(changes)};
}

std::vector<User> Accounts::users() const {
  std::vector<User> users;
  users.reserve(users_.size());
  for (const auto& [name, user] : users_) users.push_back(user);
  return users;
}

Result<User> Accounts::user(const std::string& name) const {
  const auto found = users_.find(name);
  if (found != users_.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [other, user] : users_) known.push_back(other);
  return unknown_name("user", name, known, "muster user list shows all users");
}

Result<User> Accounts::create_user(User user, const Actor& by) {
  if (auto faults = access::validate_user(user); !faults.empty()) {
    return faulty(user, std::move(faults));
  }
  if (users_.contains(user.name)) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "there is a user '" + user.name + "' already",
                 .advice = "muster user set changes it"};
  }
  user.created = parts_.clock.now();
  const User* const none = nullptr;
  MUSTER_CHECK(keep(
      {.users = {user}, .audit = {record(by, "user.create", user.name, changes_of(none, &user))}}));
  users_[user.name] = user;
  return user;
}

Result<User> Accounts::set_user(User user, const Actor& by) {
  MUSTER_TRY(const User before, this->user(user.name));
  if (auto faults = access::validate_user(user); !faults.empty()) {
    return faulty(user, std::move(faults));
  }
  user.created = before.created;
  if (user == before) return user;
  std::vector<FieldChange> changes = changes_of(&before, &user);
  std::string project = project_of(changes);
  MUSTER_CHECK(
      keep({.users = {user},
            .audit = {record(by, "user.set", user.name, std::move(changes), std::move(project))}}));
  users_[user.name] = user;
  return user;
}

Result<void> Accounts::remove_user(const std::string& name, const Actor& by) {
  MUSTER_TRY(const User before, user(name));
  std::vector<std::string> ids;
  for (const auto& [id, token] : tokens_) {
    if (token.user == name) ids.push_back(id);
  }
  const User* const none = nullptr;
  MUSTER_CHECK(keep({.removed_users = {name},
                     .removed_tokens = ids,
                     .audit = {record(by, "user.remove", name, changes_of(&before, none))}}));
  users_.erase(name);
  for (const std::string& id : ids) tokens_.erase(id);
  return {};
}

Result<std::vector<AuditRecord>> Accounts::audit(const access::AuditQuery& query) const {
  return parts_.store.audit(query);
}

}  // namespace muster::control
