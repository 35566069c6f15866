#include "control/accounts.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "control/audit_changes.h"
#include "control/unknown_name.h"
#include "job/validate.h"

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
          .what = "user '" + user.name + "' is invalid",
          .faults = std::move(faults)};
}

/// If only a role in one project has changed, the record belongs to that project.
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
  try_key();
  drop_long_expired();
}

Error Accounts::not_valid() {
  return {.code = ErrorCode::kRefused,
          .what = "the token is not valid",
          .advice = "get a new token with muster login",
          .detail = std::make_shared<const access::NotLoggedIn>()};
}

Result<Identity> Accounts::identify(std::string_view token_text, const std::string& address) {
  const auto text = access::parse_token(token_text);
  if (!text) return not_valid();
  // An unknown id is checked against a token that no user has: the hash is computed and compared in
  // any case, so the time of the answer does not reveal which ids exist.
  static const Token kNoUsersToken{.hash = std::string(32, '\0')};
  const auto found = tokens_.find(text->id);
  const Token& shown = found == tokens_.end() ? kNoUsersToken : found->second;
  const bool is_right = access::matches(shown, text->secret);
  const auto user = users_.find(shown.user);
  if (!is_right || found == tokens_.end() || user == users_.end()) return not_valid();

  const base::Time now = parts_.clock.now();
  if (access::is_expired(shown, now)) {
    return Error{.code = ErrorCode::kRefused,
                 .what = "the token expired at " + base::to_rfc3339(*shown.expires, 0),
                 .advice = "get a new token with muster login",
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
    base::log_warning("cannot store when tokens were last used", {{"error", kept.error().what}});
    keep_uses_soon();
  });
}

/// Commits `batch`, together with the recent uses of tokens.
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

std::string Accounts::unix_account_of(const std::string& user) const {
  const auto found = users_.find(user);
  return found == users_.end() ? "" : found->second.account;
}

/// An account that the user has already is not looked up again: whatever became of it, other
/// properties of the user can still be changed.
std::vector<base::Fault> Accounts::faults_of(const User& user, const std::string& account) const {
  std::vector<base::Fault> faults = access::validate_user(user);
  if (user.account.empty() || user.account == account) return faults;
  if (account_faults_ == nullptr) {
    faults.push_back({.field = "account", .what = "this server runs no jobs under Unix accounts"});
    return faults;
  }
  const bool has_fault = std::any_of(faults.begin(), faults.end(), [](const base::Fault& fault) {
    return fault.field == "account";
  });
  if (has_fault) return faults;
  for (base::Fault& fault : account_faults_(user.account)) faults.push_back(std::move(fault));
  return faults;
}

Result<User> Accounts::create_user(User user, const Actor& by) {
  if (auto faults = faults_of(user, ""); !faults.empty()) return faulty(user, std::move(faults));
  if (users_.contains(user.name)) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "user '" + user.name + "' exists already",
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
  if (auto faults = faults_of(user, before.account); !faults.empty()) {
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

// Tokens: made, used up, listed and revoked.

using access::TokenKind;
using base::Fault;
using std::chrono::seconds;

namespace {

// Longer than any use, and far from the end of nanoseconds since 1970.
constexpr seconds kLongestLifetime = std::chrono::hours(24 * 365 * 100);
constexpr size_t kLongestDescription = 200;
constexpr size_t kMostProjects = 100;
constexpr int64_t kMostTokens = 1000;  // of one user: all tokens are in memory

}  // namespace

std::vector<Fault> faults_of_token(const TokenRequest& request) {
  std::vector<Fault> faults;
  if (request.lifetime &&
      (*request.lifetime < seconds(1) || *request.lifetime > kLongestLifetime)) {
    faults.push_back({"lifetime", "give a time between 1 second and 100 years"});
  }
  if (request.description.size() > kLongestDescription) {
    faults.push_back(
        {"description", "is longer than " + std::to_string(kLongestDescription) + " bytes"});
  }
  if (request.ceiling == access::Role::kNone) {
    faults.push_back({"ceiling", "a token requires a role; give viewer, member or admin"});
  }
  if (request.projects.size() > kMostProjects) {
    faults.push_back({"projects", "are more than " + std::to_string(kMostProjects)});
  }
  return faults;
}

Result<IssuedToken> Accounts::issue(const TokenRequest& request, const Actor& by) {
  MUSTER_CHECK(user(request.user));
  return make(request, std::nullopt, "token.create", {}, by);
}

Result<IssuedToken> Accounts::log_in(const Identity& who, const std::string& description,
                                     seconds lifetime, const Actor& by) {
  const auto found = tokens_.find(who.token);
  if (found == tokens_.end()) return not_valid();
  const Token& shown = found->second;
  // An API token yields an API token, not a session: a session may issue tokens that outlive it.
  const bool is_program = shown.kind == TokenKind::kApi;
  TokenRequest request{.user = shown.user,
                       .kind = is_program ? TokenKind::kApi : TokenKind::kSession,
                       .description = description,
                       .ceiling = shown.ceiling,
                       .projects = shown.projects,
                       .lifetime = lifetime};
  // A session has at most the rights and the lifetime of the token that it was made from. The short
  // lifetime of an invitation only limits the login.
  const bool is_invitation = shown.kind == TokenKind::kInvitation;
  const auto until = is_invitation ? std::nullopt : shown.expires;
  std::vector<std::string> gone;
  if (is_invitation) gone.push_back(shown.id);
  return make(request, until, "token.login", std::move(gone), by);
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
                   "revoke tokens that are not needed: muster token list, muster token "
                   "revoke"};
}

/// `until`: the latest time of expiry; `gone`: tokens that the new token replaces.
Result<IssuedToken> Accounts::make(const TokenRequest& request, std::optional<base::Time> until,
                                   const std::string& action, std::vector<std::string> gone,
                                   const Actor& by) {
  if (auto faults = faults_of_token(request); !faults.empty()) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "the options of the token are invalid",
                 .faults = std::move(faults)};
  }
  MUSTER_CHECK(check_room_for_token(request.user));
  access::NewToken made = access::make_token(parts_.random);
  while (tokens_.contains(made.id)) made = access::make_token(parts_.random);

  Token token{.id = std::move(made.id),
              .user = request.user,
              .kind = request.kind,
              .description = request.description,
              .ceiling = request.ceiling,
              .projects = request.projects,
              .created = parts_.clock.now(),
              .expires = until,
              .hash = std::move(made.hash)};
  if (request.lifetime) {
    const base::Time end = token.created + *request.lifetime;
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
  // Suggests no similar id, which may belong to another user.
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

// Secrets: sealed at once, opened when a job starts.

using access::Secret;

namespace {

constexpr size_t kLargestValue = 64 * 1024;

std::vector<Fault> secret_faults(const std::string& name, std::string_view value) {
  std::vector<Fault> faults;
  if (!job::is_secret_name(name)) {
    faults.push_back({"name",
                      "is not the name of a secret; use at most 128 letters, digits and "
                      "'_', and no digit first"});
  }
  if (value.empty()) faults.push_back({"value", "is empty"});
  if (value.size() > kLargestValue) faults.push_back({"value", "is larger than 64 KiB"});
  return faults;
}

}  // namespace

/// One secret is enough: all are encrypted with one key.
void Accounts::try_key() const {
  if (secrets_.empty()) return;
  const auto& [project, name] = secrets_.begin()->first;
  const auto opened = open_secret(project, name);
  if (opened) return;
  base::log_warning("secret.key does not fit the stored secrets: " + opened.error().to_string());
}

std::vector<Secret> Accounts::secrets(const std::string& project) const {
  std::vector<Secret> secrets;
  for (auto next = secrets_.lower_bound({project, ""});
       next != secrets_.end() && next->first.project == project; ++next) {
    secrets.push_back(next->second);
  }
  return secrets;
}

Result<Secret> Accounts::set_secret(const std::string& project, const std::string& name,
                                    std::string_view value, const Actor& by) {
  if (auto faults = secret_faults(name, value); !faults.empty()) {
    return Error{
        .code = ErrorCode::kInvalid, .what = "the secret is invalid", .faults = std::move(faults)};
  }
  const base::Time now = parts_.clock.now();
  Secret secret{.project = project,
                .name = name,
                .sealed = parts_.box.seal(value, project, name, parts_.random),
                .created = now,
                .changed = now,
                .changed_by = by.user};
  const auto known = secrets_.find({project, name});
  if (known != secrets_.end()) secret.created = known->second.created;
  MUSTER_CHECK(keep({.secrets = {secret}, .audit = {record(by, "secret.set", name, {}, project)}}));
  secrets_[{project, name}] = secret;
  return secret;
}

Result<void> Accounts::remove_secret(const std::string& project, const std::string& name,
                                     const Actor& by) {
  if (!has_secret(project, name)) return no_secret(project, name);
  MUSTER_CHECK(keep({.removed_secrets = {{project, name}},
                     .audit = {record(by, "secret.remove", name, {}, project)}}));
  secrets_.erase({project, name});
  return {};
}

Result<std::string> Accounts::open_secret(const std::string& project,
                                          const std::string& name) const {
  const auto found = secrets_.find({project, name});
  if (found == secrets_.end()) return no_secret(project, name);
  return parts_.box.open(found->second.sealed, project, name);
}

std::string Accounts::seal(std::string_view value, const std::string& project,
                           const std::string& name) {
  return parts_.box.seal(value, project, name, parts_.random);
}

Result<std::string> Accounts::open(std::string_view sealed, const std::string& project,
                                   const std::string& name) const {
  return parts_.box.open(sealed, project, name);
}

bool Accounts::has_secret(const std::string& project, const std::string& name) const {
  return secrets_.contains({project, name});
}

Error Accounts::no_secret(const std::string& project, const std::string& name) const {
  std::vector<std::string> known;
  for (const Secret& secret : secrets(project)) known.push_back(secret.name);
  Error error = unknown_name("secret", name, known,
                             "muster secret set " + name + " --project " + project + " adds one");
  error.what += " in project '" + project + "'";
  return error;
}

void Accounts::forget_project(const std::string& project, store::Batch& batch) const {
  for (const Secret& secret : secrets(project))
    batch.removed_secrets.push_back({project, secret.name});
  for (const auto& [name, user] : users_) {
    if (!user.projects.contains(project)) continue;
    batch.users.push_back(user);
    batch.users.back().projects.erase(project);
  }
}

void Accounts::project_is_gone(const std::string& project) {
  for (const Secret& secret : secrets(project)) secrets_.erase({project, secret.name});
  for (auto& [name, user] : users_) user.projects.erase(project);
}

Result<void> may_submit(const Accounts& accounts, const std::string& name,
                        const std::string& server_owner, const job::JobSpec& spec,
                        const std::vector<std::string>& line) {
  const auto refused = [&](const std::string& why) {
    return Error{.code = ErrorCode::kRefused, .what = "user " + name_in_quotes(name) + " " + why};
  };
  const auto user = accounts.user(name);
  if (!user) {
    if (name == server_owner || name.empty()) return {};
    return refused("no longer exists");
  }
  if (user->disabled) return refused("is disabled");
  const access::Identity who{
      .user = name, .server_role = user->server_role, .projects = user->projects};
  if (who.in_project(line) < access::Role::kMember) {
    return refused("may no longer submit jobs in project " + name_in_quotes(spec.project));
  }
  if (spec.sandbox == job::Sandbox::kNone && who.over_server() < access::Role::kAdmin) {
    return refused("may no longer submit jobs without a sandbox");
  }
  return {};
}

}  // namespace muster::control
